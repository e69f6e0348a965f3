//! Control groups: making, finding, nesting, removing.

use crate::support::{Shell, finish, leaf, line, until};
use placement_contract::Mechanism;
use placement_identity::{Observer, boot_id};
use placement_process::{
    Birthplace, CgroupLeaf, CgroupSite, LeafDoubt, LeafError, LeafPresence, Population, SiteError,
};

/// The directory of a leaf, found without the code under test.
fn directory(leaf: &CgroupLeaf) -> std::path::PathBuf {
    ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .iter()
        .map(|mount| std::path::Path::new(mount).join(leaf.path().trim_start_matches('/')))
        .find(|path| path.join("cgroup.procs").exists())
        .expect("the leaf is below a usual mount")
}

fn look_up(path: &str, id: Option<u64>) -> LeafPresence {
    CgroupLeaf::look_up(path, id, &boot_id().expect("a boot id"), &Observer::here().expect("here"))
}

fn removed(leaf: CgroupLeaf) {
    let gone = leaf.remove().map_err(|(_, error)| error).expect("an empty leaf can be removed");
    assert_eq!(gone.mechanism(), Mechanism::Cgroup);
}

#[test]
fn a_leaf_has_the_path_that_was_foretold() {
    let Some(leaf) = leaf("path") else { return };
    let name = leaf.path().rsplit('/').next().unwrap().to_owned();
    assert_eq!(CgroupSite::find().unwrap().leaf_path(&name).unwrap(), leaf.path());
    removed(leaf);
}

#[test]
fn a_name_that_leads_elsewhere_is_refused_and_makes_nothing() {
    let Ok(site) = CgroupSite::find() else {
        println!("not looked at: no cgroup v2 here");
        return;
    };
    assert_eq!(site.leaf_path("../other"), Err(SiteError::Name));
    assert_eq!(site.create("../other").unwrap_err(), LeafError::Path);
}

#[test]
fn an_existing_group_is_not_taken_over() {
    let Some(leaf) = leaf("taken") else { return };
    let name = leaf.path().rsplit('/').next().unwrap();
    let again = CgroupSite::find().unwrap().create(name).unwrap_err();
    let LeafError::Create(errno) = again else { panic!("{again}") };
    assert_eq!(errno.name(), "EEXIST");
    removed(leaf);
}

#[test]
fn an_empty_leaf_has_no_members_and_is_removed() {
    let Some(leaf) = leaf("empty") else { return };
    let path = directory(&leaf);
    assert_eq!(leaf.members().unwrap(), []);
    assert_eq!(leaf.populated().unwrap(), Population::Empty);
    removed(leaf);
    assert!(!path.exists());
}

#[test]
fn a_populated_leaf_is_not_removed() {
    let Some(leaf) = leaf("busy") else { return };
    let (leader, _output) =
        Shell { birthplace: Birthplace::Leaf(&leaf), ..Shell::new("exec sleep 300") }.start();
    assert_eq!(leaf.populated().unwrap(), Population::Populated);
    assert_eq!(leaf.members().unwrap(), [leader.pid()]);
    let (leaf, error) = leaf.remove().unwrap_err();
    let LeafError::Remove(errno) = error else { panic!("{error}") };
    assert_eq!(errno.name(), "EBUSY");
    finish(leader);
    until("the empty leaf", || (leaf.populated() == Ok(Population::Empty)).then_some(()));
    removed(leaf);
}

#[test]
fn an_ended_leader_that_was_not_reaped_does_not_populate() {
    let Some(leaf) = leaf("zombie") else { return };
    let (leader, _output) =
        Shell { birthplace: Birthplace::Leaf(&leaf), ..Shell::new("exit 0") }.start();
    crate::support::exit_of(&leader);
    until("the empty leaf", || (leaf.populated() == Ok(Population::Empty)).then_some(()));
    assert_eq!(leaf.members().unwrap(), []);
    removed(leaf);
    finish(leader);
}

#[test]
fn groups_that_the_child_made_inside_are_looked_at_and_removed() {
    let Some(leaf) = leaf("nested") else { return };
    let path = directory(&leaf);
    let script = format!(
        "mkdir -p {0}/one/two {0}/three && echo $$ > {0}/one/two/cgroup.procs && echo in; exec sleep 300",
        path.display()
    );
    let (leader, output) =
        Shell { birthplace: Birthplace::Leaf(&leaf), ..Shell::new(&script) }.start();
    assert_eq!(line(&output), "in");
    assert_eq!(leaf.populated().unwrap(), Population::Populated);
    assert_eq!(leaf.members().unwrap(), [leader.pid()]);
    leaf.kill().unwrap();
    finish(leader);
    until("the empty leaf", || (leaf.populated() == Ok(Population::Empty)).then_some(()));
    removed(leaf);
    assert!(!path.exists());
}

#[test]
fn a_recorded_leaf_is_found_killed_and_proven_gone_by_another() {
    let Some(leaf) = leaf("recorded") else { return };
    let (leader, _output) =
        Shell { birthplace: Birthplace::Leaf(&leaf), ..Shell::new("exec sleep 300") }.start();
    let (path, id) = (leaf.path().to_owned(), leaf.id());
    drop(leaf);
    let LeafPresence::Present(found) = look_up(&path, Some(id)) else { panic!("not found") };
    found.kill().unwrap();
    finish(leader);
    until("the empty leaf", || (found.populated() == Ok(Population::Empty)).then_some(()));
    removed(found);
    let LeafPresence::Gone(gone) = look_up(&path, Some(id)) else { panic!("still there") };
    assert_eq!(gone.proof(), "the cgroup does not exist any more");
}

#[test]
fn a_later_group_at_the_same_path_is_another_one() {
    let Some(leaf) = leaf("again") else { return };
    let answer = look_up(leaf.path(), Some(leaf.id() + 1));
    assert!(matches!(answer, LeafPresence::Gone(_)), "{answer:?}");
    assert!(matches!(look_up(leaf.path(), None), LeafPresence::Present(_)));
    removed(leaf);
}

#[test]
fn a_leaf_of_another_cgroup_namespace_is_unknown() {
    let Ok(site) = CgroupSite::find() else {
        println!("not looked at: no cgroup v2 here");
        return;
    };
    let path = site.leaf_path("pl-test-never-made").unwrap();
    let mut made = Observer::here().unwrap();
    made.cgroup_namespace = made.cgroup_namespace.map(|inode| inode + 1);
    let answer = CgroupLeaf::look_up(&path, None, &boot_id().unwrap(), &made);
    assert!(matches!(answer, LeafPresence::Unknown(LeafDoubt::OtherCgroupNamespace)));
}

#[test]
fn a_leaf_that_was_recorded_and_never_made_is_gone() {
    let Ok(site) = CgroupSite::find() else {
        println!("not looked at: no cgroup v2 here");
        return;
    };
    let path = site.leaf_path("pl-test-never-made").unwrap();
    assert!(matches!(look_up(&path, None), LeafPresence::Gone(_)));
}

#[test]
fn a_leaf_of_an_earlier_boot_is_gone_on_a_known_machine() {
    let made = Observer::here().unwrap();
    let answer = CgroupLeaf::look_up("/x", None, "00000000-0000-4000-8000-000000000001", &made);
    match made.machine_id {
        Some(_) => assert!(matches!(answer, LeafPresence::Gone(_)), "{answer:?}"),
        None => assert!(matches!(answer, LeafPresence::Unknown(_)), "{answer:?}"),
    }
}

#[test]
fn a_path_that_climbs_is_refused() {
    for path in ["relative", "/", "/a/../b", "/.."] {
        let answer = look_up(path, None);
        assert!(
            matches!(answer, LeafPresence::Unknown(LeafDoubt::Leaf(LeafError::Path))),
            "{path}: {answer:?}"
        );
    }
}
