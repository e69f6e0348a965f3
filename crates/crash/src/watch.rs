//! What a test of one thread does at the points that this thread comes by.

use std::cell::RefCell;
use std::fmt;

type Watcher = Box<dyn FnMut(&str)>;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// Calls `watcher` at each point that this thread comes by while `body` runs.
///
/// Points that the watcher itself comes by are not announced. A watcher that panics ends the body
/// at that point, as the end of its process would, but that destructors run.
pub fn watch<T>(watcher: impl FnMut(&str) + 'static, body: impl FnOnce() -> T) -> T {
    WATCHER.set(Some(Box::new(watcher)));
    let _unwatched = Unwatch;
    body()
}

struct Unwatch;

impl Drop for Unwatch {
    fn drop(&mut self) {
        WATCHER.set(None);
    }
}

/// Tells the watcher of this thread, if it has one.
pub(crate) fn tell(name: &impl fmt::Display) {
    let Some(mut watcher) = WATCHER.take() else { return };
    watcher(&name.to_string());
    WATCHER.set(Some(watcher));
}

#[cfg(test)]
mod tests {
    use crate::{point, watch};
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    fn seen() -> (Rc<RefCell<Vec<String>>>, impl FnMut(&str)) {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let told = Rc::clone(&seen);
        (seen, move |name: &str| told.borrow_mut().push(name.to_owned()))
    }

    #[test]
    fn a_watcher_is_told_of_its_own_thread_and_body_only() {
        let (seen, watcher) = seen();
        point("before");
        watch(watcher, || {
            point("here");
            std::thread::spawn(|| point("elsewhere")).join().unwrap();
        });
        point("after");
        assert_eq!(*seen.borrow(), ["here"]);
    }

    #[test]
    fn what_a_watcher_does_is_not_watched() {
        let (seen, mut watcher) = seen();
        let watching = move |name: &str| {
            watcher(name);
            point("within");
        };
        watch(watching, || point("here"));
        assert_eq!(*seen.borrow(), ["here"]);
    }

    #[test]
    fn a_watcher_that_panics_ends_the_body_and_is_forgotten() {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            watch(|_| std::panic::resume_unwind(Box::new("end")), || point("here"));
        }));
        assert!(ended.is_err());
        point("after");
    }
}
