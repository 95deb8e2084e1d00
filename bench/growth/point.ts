import { VERSION } from '../../src/version.ts'
import { type Contestant, measure } from '../contest/contest.ts'
import type { Findings } from '../figure.ts'
import type { Lab } from '../lab.ts'
import type { Generator, Load } from '../load/generator.ts'
import { posternPeer } from '../peers/postern.ts'
import { MEBIBYTE, watchMemory } from '../process-usage.ts'
import { requestOnce } from '../request.ts'
import { say } from '../run-program.ts'
import type { Point } from './curve.ts'

/** Starts Postern as the only contestant. */
export async function startPostern(
  lab: Lab,
  generator: Generator,
  set: readonly string[],
  devicePort: number = lab.device.port,
): Promise<Contestant> {
  const peer = posternPeer({ set, program: lab.program })
  const running = await peer.start({ devicePort, core: lab.proxyCore })
  return { peer, version: VERSION, running, generator }
}

/** The findings when a required program is not installed. */
export function notInstalled(program: string): Findings {
  return { checks: [], charts: [], tables: [], notes: [`skipped: ${program} is not installed`], faults: [] }
}

/** Measures one point of a curve. The first response of the contestant is the expected one. */
export async function measurePoint(
  contestant: Contestant,
  x: number,
  what: string,
  load: Omit<Load, 'expected'> & { readonly body?: string },
): Promise<Point> {
  const { status, body, headBytes } = await requestOnce(load.url, { headers: contestant.running.headers })
  if (status !== 200) throw new Error(`${contestant.peer.name} responds with ${status} ${body.slice(0, 200)}`)
  const watch = watchMemory(contestant.running.children[0]?.pid ?? 0)
  const expected = { status, body: load.body ?? body, headBytes }
  const sample = await measure(contestant, { ...load, expected })
  const { peak } = await watch.stop()
  say(`  ${contestant.peer.name}, ${x} ${what}: ${sample.requestsPerSecond.toFixed(0)}/s`)
  return {
    x,
    rate: sample.requestsPerSecond,
    busy: sample.busy,
    memory: peak === undefined ? undefined : peak / MEBIBYTE,
    failed: sample.failed,
  }
}
