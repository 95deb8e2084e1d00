/** The folders to use in place of `/etc/postern` and `/var/lib/postern`. */
export interface Places {
  readonly configuration: string
  readonly state: string
}

/**
 * The flags of Node in the executable. Node's permission model is on: the program may read its configuration, its state and the
 * secrets that a service manager hands over, and write its state. For a command, or a configuration with files elsewhere, the
 * program restarts itself with more permissions (src/system/permissions.ts), which is what `--allow-child-process` is for:
 * `serve` gives that up before it listens.
 */
export const NODE_FLAGS: readonly string[] = [
  '--permission',
  '--allow-net',
  '--allow-child-process',
  '--allow-fs-read=/etc/hosts',
  '--allow-fs-read=/etc/postern',
  '--allow-fs-read=/run/credentials/postern.service',
  '--allow-fs-read=/run/secrets',
  '--allow-fs-read=/var/lib/postern',
  '--allow-fs-write=/var/lib/postern',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=SecurityWarning',
]

/** The flags of the executable, with other folders, for programs that Node starts as a test or a measurement. */
export function nodeFlags({ configuration, state }: Places): string[] {
  return NODE_FLAGS.map((flag) =>
    flag.replace('/etc/postern', configuration).replace('/var/lib/postern', state),
  )
}

/** The environment variables that a unit or a drop-in sets. */
export function unitEnvironment(unit: string): Record<string, string> {
  return Object.fromEntries(
    [...unit.matchAll(/^Environment="?(\w+)=([^"\n]*)"?$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  )
}
