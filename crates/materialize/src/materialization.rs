//! The order in which an intent becomes real, one bounded step after another.

use crate::environment::{self, Environment, Owned, Values};
use crate::failed::Failed;
use crate::places::{Home, attach_session, make_home, make_temporary};
use crate::{program, workdir};
use camino::Utf8PathBuf;
use placement_contract::{EvidenceKind, LaunchRequest, PlannedExecutable};
use placement_crash::point;
use placement_executable::{KnownDigests, Measured, Measuring, STEP_BYTES_MAX, search};
use placement_homes::{AttemptDir, Root, SessionKey, TemporaryDir};
use placement_paths::Dir;
use placement_resources::ResolvedGrant;

/// What a materialization starts from.
#[derive(Debug)]
pub struct Inputs {
    /// The admitted request.
    pub request: LaunchRequest,
    /// Its grants as they were recorded.
    pub grants: Vec<ResolvedGrant>,
    /// Placement's root, in which retained homes lie.
    pub root: Root,
    /// Where temporary directories go; in the attempt's own directory where absent.
    pub temporary_base: Option<Utf8PathBuf>,
    /// Where programs are looked for; the child's `PATH`.
    pub search_path: String,
    /// Environment values from the host.
    pub values: Values,
    /// Digests of programs that were measured before.
    pub known_digests: Option<KnownDigests>,
}

/// An intent that is being made real.
#[derive(Debug)]
pub struct Materialization {
    inputs: Inputs,
    stage: Stage,
}

/// How far a materialization has come.
#[derive(Debug)]
pub enum Progress {
    /// There is more to do.
    Working {
        /// Evidence to record before the next step.
        evidence: Option<(EvidenceKind, String)>,
    },
    /// Everything is there.
    Done(Box<Ready>),
}

/// Everything a child needs.
#[derive(Debug)]
pub struct Ready {
    /// The home: the attempt's own one, or the retained one of the session.
    pub home: Utf8PathBuf,
    /// The private temporary directory.
    pub tmp: TemporaryDir,
    /// The whole environment.
    pub environment: Environment,
    /// The working directory, held by descriptor.
    pub working_directory: Dir,
    /// The measured program.
    pub program: Measured,
    /// The program's name as the launch gives it, and its arguments.
    pub argv: Vec<String>,
}

/// What the next step does, with what the steps before it made.
#[derive(Debug)]
enum Stage {
    Home,
    Session(SessionKey),
    Temporary { home: Home },
    Environment { home: Home, tmp: TemporaryDir },
    WorkingDirectory { home: Home, tmp: TemporaryDir, environment: Environment },
    Program(Places),
    Measuring { places: Places, measuring: Box<Measuring> },
    Measured { places: Places, program: Box<Measured> },
    Ended,
}

#[derive(Debug)]
struct Places {
    home: Utf8PathBuf,
    tmp: TemporaryDir,
    environment: Environment,
    working_directory: Dir,
}

impl Materialization {
    /// Takes the inputs; nothing is made yet.
    pub const fn new(inputs: Inputs) -> Self {
        Self { inputs, stage: Stage::Home }
    }

    /// Takes one step: home, retained home of the session if there is one, temporary directory,
    /// environment, working directory, program found, program measured (as many steps of 1 MiB as it
    /// needs).
    ///
    /// The attempt's own directory holds no home yet and is the same in every step.
    ///
    /// A step does a handful of file operations or hashes 1 MiB, so that a caller answers in
    /// between; how long one takes is up to the file system.
    ///
    /// # Errors
    /// [`Failed`] says what to record and to answer. What was made before it stays for the cleanup.
    ///
    /// # Panics
    /// If it is called again after [`Progress::Done`] or an error.
    pub fn step(&mut self, attempt: &AttemptDir) -> Result<Progress, Failed> {
        let inputs = &self.inputs;
        let (next, evidence) = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Home => {
                let home = make_home(attempt)?;
                point("runner.home.made");
                let evidence = (EvidenceKind::HomeCreated, "private home".to_owned());
                let session = inputs.request.retained_session();
                let key = session.map(|session| SessionKey::of(&inputs.request.owner_id, session));
                let next = match key {
                    Some(key) => Stage::Session(key),
                    None => Stage::Temporary { home },
                };
                (next, Some(evidence))
            }
            Stage::Session(key) => {
                let (home, detail) = attach_session(&inputs.root, &key)?;
                point("runner.session.attached");
                let evidence = (EvidenceKind::SessionAttached, detail.to_owned());
                (Stage::Temporary { home }, Some(evidence))
            }
            Stage::Temporary { home } => {
                let tmp = make_temporary(inputs.temporary_base.as_deref(), attempt)?;
                point("runner.temporary.made");
                (Stage::Environment { home, tmp }, None)
            }
            Stage::Environment { home, tmp } => {
                let owned =
                    Owned { search_path: &inputs.search_path, home: &home.path, tmp: tmp.path() };
                let environment = environment::build(&inputs.request, &inputs.values, &owned)?;
                point("runner.environment.built");
                (Stage::WorkingDirectory { home, tmp, environment }, None)
            }
            Stage::WorkingDirectory { home, tmp, environment } => {
                let working_directory =
                    workdir::open(&inputs.request, &inputs.grants, &home.directory)?;
                point("runner.working-directory.opened");
                let home = home.path;
                (Stage::Program(Places { home, tmp, environment, working_directory }), None)
            }
            Stage::Program(places) => {
                let measuring = Box::new(find(inputs)?);
                point("runner.program.found");
                (Stage::Measuring { places, measuring }, None)
            }
            Stage::Measuring { places, measuring } => {
                measure(places, measuring, inputs.request.executable.as_ref())?
            }
            Stage::Measured { places, program } => {
                return Ok(Progress::Done(Box::new(ready(places, *program, &inputs.request))));
            }
            Stage::Ended => panic!("a materialization that ended is not stepped again"),
        };
        self.stage = next;
        Ok(Progress::Working { evidence })
    }
}

fn find(inputs: &Inputs) -> Result<Measuring, Failed> {
    let name = inputs.request.launch.executable.as_str();
    let path = search(name, &inputs.search_path).map_err(program::not_found)?;
    let known = inputs.known_digests.clone();
    Measuring::open_knowing(&path, known).map_err(|error| program::not_measured(&error))
}

fn measure(
    places: Places,
    mut measuring: Box<Measuring>,
    planned: Option<&PlannedExecutable>,
) -> Result<(Stage, Option<(EvidenceKind, String)>), Failed> {
    use placement_executable::Progress;
    match measuring.step(STEP_BYTES_MAX).map_err(|error| program::not_measured(&error))? {
        Progress::More => Ok((Stage::Measuring { places, measuring }, None)),
        Progress::Done(program) => {
            if let Some(planned) = planned {
                program::check_planned(planned, program.measurement())?;
            }
            point("runner.program.measured");
            let detail = program::describe(&program);
            let evidence = (EvidenceKind::ExecutableMeasured, detail);
            Ok((Stage::Measured { places, program }, Some(evidence)))
        }
    }
}

fn ready(places: Places, program: Measured, request: &LaunchRequest) -> Ready {
    let Places { home, tmp, environment, working_directory } = places;
    let launch = &request.launch;
    let argv =
        [&launch.executable].into_iter().chain(&launch.argv).map(ToString::to_string).collect();
    Ready { home, tmp, environment, working_directory, program, argv }
}
