/**
 * The flags of Node in the executable. Node's permission model is on: the program may read its configuration, its state, the
 * secrets that a service manager hands over, who owns the socket of a password hook, which groups have one member, and how much memory it
 * has and uses, and write its state. For a command, or a configuration with files elsewhere, the program restarts itself with more
 * permissions (src/system/permissions.ts), which is what `--allow-child-process` is for: `serve` gives that up before it listens.
 */
export const NODE_FLAGS: readonly string[] = [
  '--permission',
  '--allow-net',
  '--allow-child-process',
  '--allow-fs-read=/etc/hosts',
  '--allow-fs-read=/etc/passwd',
  '--allow-fs-read=/etc/group',
  '--allow-fs-read=/proc/self/cgroup',
  '--allow-fs-read=/proc/self/status',
  '--allow-fs-read=/sys/fs/cgroup',
  '--allow-fs-read=/etc/postern',
  '--allow-fs-read=/run/credentials/postern.service',
  '--allow-fs-read=/run/postern',
  '--allow-fs-read=/run/secrets',
  '--allow-fs-read=/var/lib/postern',
  '--allow-fs-write=/var/lib/postern',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=SecurityWarning',
]
