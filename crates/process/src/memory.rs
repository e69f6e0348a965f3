//! How a process that mostly waits takes memory, and gives it back.

use std::ops::Range;

use crate::sys;

/// Free memory that a heap keeps, in bytes: the chunks that are on their way at once, twice.
const KEPT_BYTES: i32 = 1024 * 1024;

/// Lets all threads of this process take their memory from one heap, by
/// [`mallopt(3)`](https://man7.org/linux/man-pages/man3/mallopt.3.html).
///
/// For a process with few threads: a heap of each thread's own grows by one system call a page, and
/// what is free in it stays there. The one heap keeps a megabyte that is free, so that buffers which
/// come and go do not take it from the kernel and give it back each time. Call it before the second
/// thread starts.
pub fn use_one_heap() {
    sys::use_one_heap(KEPT_BYTES);
}

/// Gives free memory back by [`malloc_trim(3)`](https://man7.org/linux/man-pages/man3/malloc_trim.3.html),
/// and lets go of this program's own code and constants by
/// [`madvise(2)`](https://man7.org/linux/man-pages/man2/madvise.2.html) with `MADV_DONTNEED`: what is
/// needed again is mapped again from the page cache.
///
/// For a process that waits for long. What cannot be given back stays.
pub fn give_back_memory() {
    if let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") {
        pure_file_pages(&maps).into_iter().for_each(sys::forget_file_pages);
    }
    // Last: what was read here is free by now too.
    sys::trim_heap();
}

/// Finds mappings that cannot be written and hold nothing but pages of their file: dropped, each page
/// comes back as it was. A page that was changed in memory, as by relocation, is not in the file.
fn pure_file_pages(maps: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut mapping = None;
    for line in maps.lines() {
        if let Some(bytes) = line.strip_prefix("Anonymous:") {
            let is_pure = bytes.trim() == "0 kB";
            found.extend(mapping.take().filter(|_| is_pure));
        } else if let Some((range, kind)) = first_line(line) {
            mapping = (kind == Kind::UnwritableFile).then_some(range);
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A private mapping of a file that cannot be written.
    UnwritableFile,
    Other,
}

/// Reads the first line of a mapping; nothing for a line that is none.
fn first_line(line: &str) -> Option<(Range<usize>, Kind)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let mode = fields.next()?;
    let has_file = fields.nth(3).is_some_and(|path| path.starts_with('/'));
    let fits = has_file && matches!(mode, "r-xp" | "r--p");
    Some((start..end, if fits { Kind::UnwritableFile } else { Kind::Other }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_pages_of_a_file_are_found() {
        let mapping = |first: &str, anonymous: &str| {
            format!("{first}\nSize:  8 kB\nRss:  4 kB\nAnonymous:  {anonymous} kB\nVmFlags: rd\n")
        };
        let maps = [
            mapping("1000-2000 r-xp 00000000 fe:00 7   /bin/a b", "0"),
            mapping("2000-3000 r--p 00001000 fe:00 7   /bin/a b", "4"),
            mapping("3000-4000 rw-p 00002000 fe:00 7   /bin/a b", "0"),
            mapping("4000-5000 r--p 00000000 00:00 0 ", "0"),
            mapping("5000-6000 r-xp 00000000 00:00 0   [vdso]", "0"),
            mapping("6000-7000 r--p 00000000 fe:00 9   /lib/c", "0"),
            mapping("7000-8000 r--s 00000000 fe:00 9   /shared", "0"),
        ];
        assert_eq!(pure_file_pages(&maps.concat()), [0x1000..0x2000, 0x6000..0x7000]);
    }

    #[test]
    fn the_program_goes_on_after_it() {
        let words = vec!["kept".to_owned(); 100];
        give_back_memory();
        assert!(words.iter().all(|word| word == "kept"));
        assert_eq!(format!("{:?}", Some(1.5)), "Some(1.5)");
    }
}
