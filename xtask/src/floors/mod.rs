//! `floors`: a crate imports only crates on lower floors, and the smallest next to nothing else.

mod alone;

use crate::command::{Failure, conclude};
use crate::workspace::{Package, Workspace};

/// Every member with its floor. A crate sees only what lies below it.
pub(crate) const FLOORS: &[(&str, u8)] = &[
    ("placement-contract", 0),
    ("placement-crash", 0),
    ("placement-paths", 0),
    ("placement-identity", 0),
    ("placement-testkit", 0),
    ("placement-transitions", 1),
    ("placement-process", 1),
    ("placement-executable", 1),
    ("placement-protocol", 1),
    ("placement-transport", 2),
    ("placement-capability", 2),
    ("placement-store", 2),
    ("placement-homes", 2),
    ("placement-configuration", 2),
    ("placement-policy", 2),
    ("placement-resources", 3),
    ("placement-materialize", 4),
    ("placement-runner", 5),
    ("placement-service", 5),
    ("placement-fuzz", 7),
    ("placement", 7),
    ("placement-world", 8),
    ("placement-cli", 8),
    ("placement-runner-bin", 8),
    ("xtask", 9),
];

/// Crates that only one member may name, as any kind of dependency; the benchmark compares with one
/// of them by itself, test support damages a store with it, and fuzzing changes stored rows.
const RESERVED: &[(&str, &[&str])] = &[
    ("rusqlite", &["placement-store", "placement-world", "placement-fuzz", "xtask"]),
    ("refinery", &["placement-store"]),
    ("libsqlite3-sys", &["placement-store"]),
];

/// Crates of the operating system, and what may ship with them; the rest asks those.
const SYSTEM: &[(&str, &[&str])] = &[
    ("libc", &["placement-process"]),
    ("procfs", &["placement-identity", "placement-process"]),
    (
        "nix",
        &[
            "placement-crash",
            "placement-identity",
            "placement-process",
            "placement-transport",
            "placement-runner",
            "placement-cli",
        ],
    ),
    (
        "rustix",
        &[
            "placement-paths",
            "placement-identity",
            "placement-process",
            "placement-executable",
            "placement-transport",
            "placement-homes",
            "placement-runner",
            "placement-service",
            "placement",
        ],
    ),
];

/// Test support: what ships must not import it.
const TEST_SUPPORT: &[&str] = &["placement-testkit", "placement-world", "placement-fuzz"];
/// The members that do not ship.
const UNSHIPPED: &[&str] = &["placement-testkit", "placement-world", "placement-fuzz", "xtask"];

/// Checks every import of the workspace.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let mut findings = check(&workspace.packages, FLOORS);
    findings.extend(alone::check(&workspace.root)?);
    conclude("floors", &findings)
}

/// Returns the floor of a member.
pub(crate) fn floor_of(name: &str, floors: &[(&str, u8)]) -> Option<u8> {
    floors.iter().find(|(member, _)| *member == name).map(|(_, floor)| *floor)
}

fn check(packages: &[Package], floors: &[(&str, u8)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (member, _) in floors {
        if !packages.iter().any(|package| package.name == *member) {
            findings.push(format!("{member} has a floor and is no member of the workspace"));
        }
    }
    for package in packages {
        match floor_of(&package.name, floors) {
            Some(floor) => findings.extend(upward_imports(package, floor, floors)),
            None => findings.push(format!("{} has no floor in floors/mod.rs", package.name)),
        }
        findings.extend(reserved_imports(package));
        findings.extend(system_imports(package));
        findings.extend(test_support_imports(package));
    }
    findings
}

/// Names both crates of each import to the same or a higher floor; tests may import anything.
fn upward_imports(package: &Package, floor: u8, floors: &[(&str, u8)]) -> Vec<String> {
    let imports =
        package.dependencies.iter().filter(|import| import.kind.as_deref() != Some("dev"));
    imports
        .filter_map(|import| {
            let below = floor_of(&import.name, floors)?;
            (below >= floor).then(|| {
                format!(
                    "{} (floor {floor}) imports {} (floor {below}): only lower floors may be imported",
                    package.name, import.name
                )
            })
        })
        .collect()
}

fn reserved_imports(package: &Package) -> Vec<String> {
    let mut findings = Vec::new();
    for import in &package.dependencies {
        for (reserved, holders) in RESERVED {
            if import.name == *reserved && !holders.contains(&package.name.as_str()) {
                let holders = holders.join(" and ");
                findings.push(format!("{} names {reserved}: only {holders} may", package.name));
            }
        }
    }
    findings
}

/// Tests may name them, and what does not ship: they look at the system as it is.
fn system_imports(package: &Package) -> Vec<String> {
    if UNSHIPPED.contains(&package.name.as_str()) {
        return Vec::new();
    }
    let imports =
        package.dependencies.iter().filter(|import| import.kind.as_deref() != Some("dev"));
    imports
        .filter_map(|import| {
            let (_, holders) = SYSTEM.iter().find(|(name, _)| *name == import.name)?;
            (!holders.contains(&package.name.as_str()))
                .then(|| format!("{} ships and names {}", package.name, import.name))
        })
        .collect()
}

fn test_support_imports(package: &Package) -> Vec<String> {
    if UNSHIPPED.contains(&package.name.as_str()) {
        return Vec::new();
    }
    let imports = package.dependencies.iter().filter(|import| {
        import.kind.as_deref() != Some("dev") && TEST_SUPPORT.contains(&import.name.as_str())
    });
    imports
        .map(|import| {
            format!("{} ships and imports the test support {}", package.name, import.name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    const HOUSE: &[(&str, u8)] =
        &[("low", 0), ("runner", 5), ("service", 5), ("high", 7), ("placement-testkit", 0)];

    fn package(name: &str, imports: &[(&str, Option<&str>)]) -> Package {
        let dependencies = imports
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(ToOwned::to_owned),
            })
            .collect();
        Package { name: name.to_owned(), dependencies, ..Package::default() }
    }

    fn house_with(changed: Package) -> Vec<String> {
        let mut packages: Vec<Package> = HOUSE.iter().map(|(name, _)| package(name, &[])).collect();
        packages.retain(|package| package.name != changed.name);
        packages.push(changed);
        check(&packages, HOUSE)
    }

    #[test]
    fn an_import_downward_passes() {
        assert!(house_with(package("high", &[("low", None), ("serde", None)])).is_empty());
    }

    #[test]
    fn an_import_upward_fails_and_names_both() {
        let findings = house_with(package("low", &[("high", None)]));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("low (floor 0) imports high (floor 7)"), "{findings:?}");
    }

    #[test]
    fn an_import_of_a_sibling_fails() {
        let findings = house_with(package("service", &[("runner", None)]));
        assert!(findings[0].starts_with("service (floor 5) imports runner (floor 5)"));
    }

    #[test]
    fn a_build_import_upward_fails() {
        assert_eq!(house_with(package("low", &[("high", Some("build"))])).len(), 1);
    }

    #[test]
    fn tests_may_import_upward() {
        assert!(house_with(package("low", &[("high", Some("dev"))])).is_empty());
    }

    #[test]
    fn a_member_without_a_floor_fails() {
        let findings = house_with(package("stranger", &[]));
        assert_eq!(findings, ["stranger has no floor in floors/mod.rs"]);
    }

    #[test]
    fn a_floor_without_a_member_fails() {
        let findings = check(&[package("low", &[])], &[("low", 0), ("gone", 1)]);
        assert_eq!(findings, ["gone has a floor and is no member of the workspace"]);
    }

    #[test]
    fn only_the_store_names_the_database() {
        for kind in [None, Some("dev")] {
            let findings = house_with(package("high", &[("rusqlite", kind)]));
            assert_eq!(
                findings,
                [
                    "high names rusqlite: only placement-store and placement-world and placement-fuzz \
                  and xtask may"
                ]
            );
        }
    }

    #[test]
    fn only_some_name_the_operating_system() {
        for name in ["libc", "procfs", "nix", "rustix"] {
            let findings = house_with(package("high", &[(name, None)]));
            assert_eq!(findings, [format!("high ships and names {name}")]);
            assert!(house_with(package("high", &[(name, Some("dev"))])).is_empty());
            assert!(house_with(package("placement-testkit", &[(name, None)])).is_empty());
        }
    }

    #[test]
    fn what_ships_does_not_import_test_support() {
        let findings = house_with(package("high", &[("placement-testkit", None)]));
        assert_eq!(findings, ["high ships and imports the test support placement-testkit"]);
        assert!(house_with(package("high", &[("placement-testkit", Some("dev"))])).is_empty());
    }
}
