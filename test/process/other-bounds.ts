/** An option of Node. */
export type OtherBounds = `--import=${string}`

/**
 * An option with which a process of `postern serve` has these bounds in place of its constants, as `bounds` gives them to a sidecar in the
 * process of the test.
 *
 * @param file the file of `src` that exports the bounds under this name
 */
export function otherBounds(
  file: string,
  name: string,
  bounds: Readonly<Record<string, number>>,
): OtherBounds {
  const module = new URL(`../../src/${file}`, import.meta.url)
  const program = `import { ${name} } from '${module}'; Object.assign(${name}, ${JSON.stringify(bounds)})`
  return `--import=data:text/javascript,${encodeURIComponent(program)}`
}

/** The shared store may take so long to answer (ms). */
export const storeTimeout = (timeout: number): OtherBounds =>
  otherBounds('fleet/connection.ts', 'STORE_BOUNDS', { timeout })

/** A stop gives requests in flight so long (ms). */
export const stopGrace = (grace: number): OtherBounds =>
  otherBounds('compose/drain.ts', 'STOP_BOUNDS', { grace })
