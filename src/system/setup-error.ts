/**
 * What the operator asked for cannot be set up: the configuration, a file that it names, a folder, an address. One line for
 * each thing that is wrong, with what would do; none quotes what a file holds. `main.ts` prints them and exits.
 */
export class SetupError extends Error {
  override readonly name = 'SetupError'
  readonly problems: readonly string[]
  /** 2 for what the operator has to mend before a start can succeed; 1 for what another try may find otherwise. */
  readonly exitCode: 1 | 2

  constructor(
    problems: string | readonly string[],
    { exitCode = 2, cause }: { readonly exitCode?: 1 | 2; readonly cause?: unknown } = {},
  ) {
    const lines = typeof problems === 'string' ? [problems] : problems
    super(lines.join('\n'), { cause })
    this.problems = lines
    this.exitCode = exitCode
  }
}

/**
 * Whether an error is a defect of ours, such as a call of `undefined`, and not a fault of the device or the operator: one
 * of JavaScript's own errors without a code. Node adds a code to those that it throws for a bad value, and values come from
 * outside.
 */
export function isBug(error: unknown): boolean {
  const ofLanguage = [TypeError, ReferenceError, RangeError, SyntaxError].some(
    (type) => error instanceof type,
  )
  return ofLanguage && codeOf(error) === ''
}

/** The code of an error that Node or the system gave; empty for any other. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
