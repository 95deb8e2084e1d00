import { connect } from 'node:http2'
import { text } from 'node:stream/consumers'
import { medianOf } from '../measure.ts'
import type { Program } from '../program.ts'
import { startWeighed, withMeter } from './meter.ts'

/** Requests until all is compiled that V8 compiles, and requests of a round. After 3,000, the bytes of two sidecars differ by a fifth. */
const WARM_UP = 24_000
const ROUND = 2_000
const ROUNDS = 3
/** Of HTTP/1.1. */
const SIDECARS = 3

/**
 * Bytes that V8 allocates for one warm request, without those outside of its heap. Optimized code allocates less, and V8 makes it while
 * requests come. It makes it at once here: on a thread of its own it would be done later on a busy machine.
 */
export async function weighRequests(
  program: Program,
  device: string,
): Promise<Readonly<Record<string, number>>> {
  const [node = '', ...rest] = program.command
  const command = [node, '--no-concurrent-recompilation', ...rest]
  const metered = await withMeter({ ...program, command }, 'bytes')
  const rounds = { get: [] as number[], refused: [] as number[], overHttp2: [] as number[] }
  const weigh = async (pid: number, into: number[], ask: () => Promise<unknown>): Promise<void> => {
    const allocated = async (): Promise<number> => Number(await metered.read(pid))
    for (let i = 0; i < WARM_UP; i += 1) await ask()
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await allocated()
      for (let i = 0; i < ROUND; i += 1) await ask()
      into.push(((await allocated()) - before) / ROUND)
    }
  }
  for (let i = 0; i < SIDECARS; i += 1) {
    const { child, ask, headers, stop } = await startWeighed(metered.program, device)
    await weigh(child.pid, rounds.get, () => ask({ headers }))
    await weigh(child.pid, rounds.refused, () => ask({ headers: { authorization: 'Bearer no' } }))
    await stop()
  }
  const secure = await startWeighed(metered.program, device, true)
  const stream = { ':path': '/api/x', ...secure.headers }
  // A client that has used its token before, as most have: TLS itself reads what it sends.
  const first = connect(secure.url, { rejectUnauthorized: false })
  await text(first.request(stream))
  first.destroy()
  const session = connect(secure.url, { rejectUnauthorized: false })
  await weigh(secure.child.pid, rounds.overHttp2, () => text(session.request(stream)))
  session.destroy()
  await secure.stop()
  return {
    'GET, forwarded: bytes allocated': medianOf(rounds.get),
    'GET, 401: bytes allocated': medianOf(rounds.refused),
    'GET over HTTP/2: bytes allocated': medianOf(rounds.overHttp2),
  }
}
