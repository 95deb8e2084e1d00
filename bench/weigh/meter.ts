import { existsSync, readFileSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../child.ts'
import type { Program } from '../program.ts'
import { type ReceivedResponse, type RequestOptions, requestOnce } from '../request.ts'
import { askForToken, type RunningSidecar, startSidecar } from '../sidecar.ts'

/** The limits of a sidecar that refuses no request of a measurement. */
const WIDE = { api: { requests: 1_000_000 }, oauth: { requests: 1_000_000 } } as const

/** Sends a request, by default `GET /api/x`. */
export type Ask = (options?: RequestOptions & { readonly path?: string }) => Promise<ReceivedResponse>

/** A sidecar that is weighed: with a token, and a client that asks one request after the other over one connection. */
export interface WeighedSidecar extends RunningSidecar {
  readonly headers: { readonly authorization: string }
  readonly ask: Ask
}

export async function startWeighed(program: Program, device: string, tls = false): Promise<WeighedSidecar> {
  const sidecar = await startSidecar({ device, tls, limits: WIDE, program })
  const headers = { authorization: `Bearer ${await askForToken(sidecar.url)}` }
  return { ...sidecar, headers, ask: keepAliveClient(sidecar.url) }
}

/** A client with one connection. */
export function keepAliveClient(url: string): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return ({ path = '/api/x', ...options } = {}) => requestOnce(`${url}${path}`, { ...options, agent })
}

/** A program with a meter inside, and what reads it. */
export interface Metered {
  readonly program: Program
  readonly read: (pid: number) => Promise<unknown>
}

/** @param what the meter counts: the bytes that V8 has allocated, or calls of functions between two readings */
export async function withMeter(program: Program, what: 'bytes' | 'calls'): Promise<Metered> {
  const file = join(await temporaryFolder(), 'meter')
  const [node = '', ...rest] = program.command
  const meter = fileURLToPath(new URL('meter.cjs', import.meta.url))
  const env = { ...program.env, METER: file, ...(what === 'calls' ? { METER_CALLS: '1' } : {}) }
  return {
    program: { ...program, command: [node, '--require', meter, ...rest], env },
    async read(pid) {
      rmSync(file, { force: true })
      process.kill(pid, 'SIGUSR2')
      for (const end = performance.now() + 10_000; performance.now() < end; await pause(5)) {
        if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8'))
      }
      throw new Error('the meter in the sidecar does not answer')
    },
  }
}
