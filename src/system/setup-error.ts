/**
 * The sidecar cannot start as configured: a setting, a file, a folder or an address is wrong. Each problem is one line that names the fault
 * and a correct value. No line quotes the content of a file, which may be secret. `main.ts` prints the lines and exits.
 */
export class SetupError extends Error {
  override readonly name = 'SetupError'
  readonly problems: readonly string[]
  /** The problems without the key and the remedy. */
  readonly reason: string
  /** What the operator can do, as a clause. It ends the last problem. */
  readonly remedy: string | undefined
  /** The configuration key or the flag that is at fault. It begins each problem. */
  readonly key: string | undefined
  /** 2: the operator must correct something before a start can succeed. 1: another attempt may succeed without a change. */
  readonly exitCode: 1 | 2

  constructor(
    problems: string | readonly string[],
    { exitCode = 2, cause, remedy, key }: SetupErrorDetails = {},
  ) {
    const given = typeof problems === 'string' ? [problems] : problems
    const lines = key === undefined ? given : given.map((problem) => `${key}: ${problem}`)
    const whole = remedy === undefined ? lines.join('\n') : `${lines.join('\n')}; ${remedy}`
    super(whole, { cause })
    this.problems = remedy === undefined ? lines : whole.split('\n')
    this.reason = given.join('\n')
    this.remedy = remedy
    this.key = key
    this.exitCode = exitCode
  }
}

export interface SetupErrorDetails {
  readonly exitCode?: 1 | 2
  readonly cause?: unknown
  readonly remedy?: string | undefined
  readonly key?: string | undefined
}

/**
 * The failure that ended a scope. If its parts could not be closed either, `using` throws a `SuppressedError`, whose message names no
 * failure.
 */
export function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error
}

/**
 * Whether an error is a bug of the sidecar, such as a call of `undefined`, and not a fault of the device or the operator. Bugs are
 * JavaScript's own error types without a code. Node's errors for a bad value have a code, and such values come from outside.
 */
export function isBug(error: unknown): boolean {
  const first = firstOf(error)
  const ofLanguage = [TypeError, ReferenceError, RangeError, SyntaxError].some(
    (type) => first instanceof type,
  )
  return ofLanguage && codeOf(first) === ''
}

/** The `code` of an error from Node or the system; empty for any other error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** The error codes of a process or a machine without free descriptors or memory. */
const SHORT: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAGAIN'])

/** Whether an error, or one of its causes, is a lack of descriptors or memory: the same attempt may succeed later. */
export function lacksResources(error: unknown): boolean {
  const first = firstOf(error)
  if (!(first instanceof Error)) return false
  return SHORT.has(codeOf(first)) || lacksResources(first.cause)
}

/** The flag of Node that grants each permission. The first two flags take a path. */
const FLAGS: ReadonlyMap<unknown, string> = new Map([
  ['FileSystemRead', '--allow-fs-read='],
  ['FileSystemWrite', '--allow-fs-write='],
  ['Net', '--allow-net'],
  ['WorkerThreads', '--allow-worker'],
])

/** Whether the refusal comes from Node's permission model, not from the operating system. */
export function isWithheld(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED'
}

/**
 * The reason of a failure: the system's message; after a refusal by Node's permission model (`--permission`), the missing flag with its
 * path.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const flag = isWithheld(error) && 'permission' in error ? FLAGS.get(error.permission) : undefined
  if (flag === undefined) return error.message
  const path = flag.endsWith('=') && 'resource' in error ? String(error.resource) : ''
  return `Node's permission model forbids it; add ${flag}${path} to NODE_OPTIONS`
}

/** The fields of a log line about a failure: its reason and its remedy; for a bug, the error with its stack. */
export function causeOf(error: unknown): object {
  const first = firstOf(error)
  if (isBug(first)) return { err: first }
  if (!(first instanceof SetupError)) return { reason: reasonOf(first) }
  const { reason, remedy } = first
  return { reason, ...(remedy !== undefined && { remedy }) }
}
