import type { Profiler } from 'node:inspector'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sourceProgram } from '../program.ts'
import { tokenRequest } from '../sidecar.ts'
import { keepAliveClient, startWeighed, withMeter } from './meter.ts'

/** A function of the source that a request ran, and how often. */
interface Ran {
  readonly file: string
  readonly name: string
  readonly calls: number
}

/** A timer may run beside a request, so the try with the fewest calls counts. */
const TRIES = 5

const SOURCE = new URL('../../src/', import.meta.url).href

/**
 * What one warm request of each kind passes through: files, functions and calls of the source, which V8 counts in the running sidecar.
 * `list` gets each function.
 */
export async function weighHops(
  device: string,
  list: (kind: string, ran: readonly Ran[]) => void,
): Promise<Readonly<Record<string, number>>> {
  const { program, read } = await withMeter(sourceProgram(), 'calls')
  const { child, url, ask, headers, stop } = await startWeighed(program, device)
  // A connection of its own for each: the heads of one connection may displace each other in its memory, by the bytes of a token.
  const [askWrongly, logIn] = [keepAliveClient(url), keepAliveClient(url)]
  const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
    'GET, forwarded': () => ask({ headers }),
    'GET, 401': () => askWrongly({ headers: { authorization: 'Bearer no' } }),
    'POST /oauth/token': () => logIn({ path: '/oauth/token', ...tokenRequest() }),
  }
  for (let i = 0; i < 5; i += 1) for (const once of Object.values(kinds)) await once()
  await pause(1_200) // what a start defers is over
  const figures: Record<string, number> = {}
  for (const [kind, once] of Object.entries(kinds)) {
    const tries: Ran[][] = []
    for (let i = 0; i < TRIES; i += 1) {
      await read(child.pid)
      await once()
      await pause(40) // its record
      tries.push(ranIn((await read(child.pid)) as Profiler.ScriptCoverage[])) // the meter sends what V8 counts
    }
    const [ran = []] = tries.sort((a, b) => callsOf(a) - callsOf(b))
    list(kind, ran)
    figures[`${kind}: files`] = new Set(ran.map(({ file }) => file)).size
    figures[`${kind}: functions`] = ran.length
    figures[`${kind}: calls`] = callsOf(ran)
  }
  await stop()
  return figures
}

function callsOf(ran: readonly Ran[]): number {
  return ran.reduce((sum, { calls }) => sum + calls, 0)
}

function ranIn(scripts: readonly Profiler.ScriptCoverage[]): Ran[] {
  return scripts
    .filter(({ url }) => url.startsWith(SOURCE))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName: name, ranges: [range] }) =>
        range !== undefined && range.count > 0 && name !== ''
          ? [{ file: fileURLToPath(url).slice(fileURLToPath(SOURCE).length), name, calls: range.count }]
          : [],
      ),
    )
}
