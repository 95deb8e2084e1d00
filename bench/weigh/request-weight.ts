import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../child.ts'
import { summarize } from '../measure.ts'
import type { Program } from '../program.ts'
import { askForToken, type RunningSidecar, startSidecar, tokenRequest } from '../sidecar.ts'

/** Requests until everything is compiled, and requests of a round. */
const WARM_UP = 3_000
const ROUND = 2_000
const ROUNDS = 3

const METER = fileURLToPath(new URL('meter.cjs', import.meta.url))

/** The limits of a sidecar that refuses no request of a measurement. */
export const WIDE = { api: { requests: 1_000_000 }, oauth: { requests: 1_000_000 } } as const

/** Bytes that V8 allocates for one warm request, without those outside of its heap. */
export async function weighRequests(
  program: Program,
  device: string,
): Promise<Readonly<Record<string, number>>> {
  const file = join(await temporaryFolder(), 'allocated')
  const [node = '', ...first] = program.command
  const metered: Program = {
    ...program,
    command: [node, '--require', METER, ...first],
    env: { ...program.env, METER: file },
  }
  const over1 = await startSidecar({ device, tls: false, limits: WIDE, program: metered })
  const token = await askForToken(over1.url)
  const client = keepAliveClient(over1.url)
  const get = await bytesPerRequest(over1, file, () => client('GET', { authorization: `Bearer ${token}` }))
  const refused = await bytesPerRequest(over1, file, () => client('GET', { authorization: 'Bearer no' }))
  await over1.stop()

  const over2 = await startSidecar({ device, tls: true, limits: WIDE, program: metered })
  const session = connect(over2.url, { rejectUnauthorized: false })
  const authorization = `Bearer ${await askForToken(over2.url)}`
  const get2 = await bytesPerRequest(over2, file, () => getOverHttp2(session, authorization))
  session.destroy()
  await over2.stop()
  return {
    'GET, forwarded: bytes allocated': get,
    'GET, 401: bytes allocated': refused,
    'GET over HTTP/2: bytes allocated': get2,
  }
}

async function bytesPerRequest(
  { child }: RunningSidecar,
  file: string,
  ask: () => Promise<unknown>,
): Promise<number> {
  for (let i = 0; i < WARM_UP; i += 1) await ask()
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = await allocated(child.pid, file)
    for (let i = 0; i < ROUND; i += 1) await ask()
    rounds.push(((await allocated(child.pid, file)) - before) / ROUND)
  }
  return summarize(rounds)?.median ?? Number.NaN
}

async function allocated(pid: number, file: string): Promise<number> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  for (const end = performance.now() + 10_000; performance.now() < end; await pause(5)) {
    if (existsSync(file)) return Number(readFileSync(file, 'utf8'))
  }
  throw new Error('the meter in the sidecar does not answer')
}

export type Ask = (
  method: 'GET' | 'POST',
  headers: Readonly<Record<string, string>>,
  body?: string,
) => Promise<string>

/** Requests on one connection, one after the other: to `/oauth/token` with a body, else to the device. */
export function keepAliveClient(url: string): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return async (method, headers, body) => {
    const path = body === undefined ? '/api/x' : '/oauth/token'
    const sent = request(`${url}${path}`, { method, headers: { ...headers }, agent }).end(body)
    const [response] = await once(sent, 'response')
    return text(response)
  }
}

/** Asks for tokens by the password grant. */
export function login(ask: Ask): Promise<string> {
  const { method, headers, body } = tokenRequest()
  return ask(method, headers, body)
}

function getOverHttp2(session: ClientHttp2Session, authorization: string): Promise<string> {
  return text(session.request({ ':path': '/api/x', authorization }))
}
