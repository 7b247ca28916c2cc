//! The memory available to this process: the machine's, or less if a control group limits it.

use std::path::Path;
use std::sync::LazyLock;

/// The memory of a small machine, used if the system cannot be queried.
const FALLBACK: u64 = 10 << 30;

/// The limit of the process. Queried once, because the query takes longer than opening a file.
pub(crate) fn process_memory() -> u64 {
    static MEMORY: LazyLock<u64> =
        LazyLock::new(|| memory_limit(&|path: &Path| std::fs::read_to_string(path).ok()));
    *MEMORY
}

/// The smallest of the machine's memory and the limits of the process's control groups. `read` returns the content of a system
/// file.
fn memory_limit(read: &dyn Fn(&Path) -> Option<String>) -> u64 {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| machine_memory(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limit = groups.lines().filter_map(|line| group_limit(line, read)).min();
    match (machine, limit) {
        (Some(machine), Some(limit)) => machine.min(limit),
        (Some(known), None) | (None, Some(known)) => known,
        (None, None) => FALLBACK,
    }
}

/// `MemTotal` of `/proc/meminfo`.
fn machine_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The limit given by a line of `/proc/self/cgroup`: `0::/path` in version 2, `4:memory:/path` in version 1. The limits of parent
/// groups apply too. Inside a container the path may be that of the host, of which only the root is visible.
fn group_limit(line: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, file) = if controllers.is_empty() {
        (Path::new("/sys/fs/cgroup"), "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")
    } else {
        return None;
    };
    let inner = Path::new(path.trim_start_matches('/'));
    // The path of a group outside the visible part starts with "..", so only the root can be queried.
    let is_visible = inner.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let inner = if is_visible { inner } else { Path::new("") };
    // "max" does not parse as a number and means no limit. A limit of zero cannot be real, because we are running.
    let limit = |group: &Path| {
        let text = read(&root.join(group).join(file))?;
        text.trim().parse::<u64>().ok().filter(|limit| *limit > 0)
    };
    inner.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The limit on a system with these files and 16 GiB of memory.
    fn limit(files: &[(&str, &str)]) -> u64 {
        memory_limit(&|path: &Path| {
            let all =
                files.iter().chain([&("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n")]);
            let mut all = all.filter(|(own, _)| Path::new(own) == path);
            all.next().map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn without_groups_it_is_that_of_the_machine() {
        assert_eq!(limit(&[]), 16 * GIB);
        assert_eq!(memory_limit(&|_| None), FALLBACK);
        let broken = [("/proc/self/cgroup", "nonsense\n0::\n"), ("/sys/fs/cgroup/memory.max", "lots\n")];
        assert_eq!(limit(&broken), 16 * GIB);
        assert!(process_memory() > 0);
    }

    #[test]
    fn version_2_limits_count_from_the_group_up_to_the_root() {
        let own = ("/proc/self/cgroup", "0::/user.slice/job\n");
        let unlimited = ("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
        let slice = ("/sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
        assert_eq!(limit(&[own, unlimited]), 16 * GIB);
        assert_eq!(limit(&[own, unlimited, slice]), 4 * GIB);
        assert_eq!(limit(&[own, ("/sys/fs/cgroup/user.slice/job/memory.max", "1073741824\n"), slice]), GIB);
        assert_eq!(limit(&[own, ("/sys/fs/cgroup/user.slice/job/memory.max", "0\n")]), 16 * GIB);
        // More than the machine has.
        assert_eq!(limit(&[own, ("/sys/fs/cgroup/user.slice/memory.max", "1099511627776\n")]), 16 * GIB);
    }

    #[test]
    fn a_container_sees_its_limit_at_the_root() {
        let root = ("/sys/fs/cgroup/memory.max", "2147483648\n");
        for group in ["0::/\n", "0::/docker/0123abcd\n", "0::/../../other\n"] {
            assert_eq!(limit(&[("/proc/self/cgroup", group), root]), 2 * GIB, "{group}");
        }
    }

    #[test]
    fn version_1_limits_count_too() {
        let groups = "12:cpu,cpuacct:/job\n4:memory:/job\n0::/init.scope\n";
        let files = |limit| {
            [
                ("/proc/self/cgroup", groups),
                ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", limit),
                ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ]
        };
        assert_eq!(limit(&files("1073741824\n")), GIB);
        assert_eq!(limit(&files("9223372036854771712\n")), 16 * GIB);
    }
}
