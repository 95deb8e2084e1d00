/** The flag of Node that grants each permission; the first two take a path. */
const FLAGS: ReadonlyMap<unknown, string> = new Map([
  ['FileSystemRead', '--allow-fs-read='],
  ['FileSystemWrite', '--allow-fs-write='],
  ['Net', '--allow-net'],
  ['WorkerThreads', '--allow-worker'],
])

/** Whether Node's permission model refused the operation, and not the operating system. */
export function isWithheld(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED'
}

/**
 * The reason of a failure: the system's message, or, if Node's permission model (`--permission`) refused the operation, the
 * missing flag with its path.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const flag = isWithheld(error) && 'permission' in error ? FLAGS.get(error.permission) : undefined
  if (flag === undefined) return error.message
  const path = flag.endsWith('=') && 'resource' in error ? String(error.resource) : ''
  return `Node's permission model forbids it; add ${flag}${path} to NODE_OPTIONS`
}
