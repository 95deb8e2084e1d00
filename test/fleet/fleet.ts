import { storeTimeout } from '../process/other-bounds.ts'
import { prepareSite, type Served, type Site, tokensOf } from '../process/serve.ts'
import type { Device } from '../support/device.ts'
import { PASSWORD, type Tokens, type YamlPart } from '../support/sidecar.ts'

/** Sidecar processes with one shared store in front of one device. */
export interface Fleet {
  readonly sites: readonly Site[]
  /** A restart replaces its entry. */
  readonly sidecars: Served[]
}

export interface FleetOptions {
  readonly device: Pick<Device, 'url'>
  /** The value of `tokens.store`. */
  readonly url: string
  readonly config?: YamlPart
  /** How long the store may take to answer (ms), in place of the constant. */
  readonly timeout?: number
  /** Default: 3. */
  readonly size?: number
}

/** Starts processes of `postern serve`, at the same time. They end with the test. */
export async function startFleet({
  device,
  url,
  config = {},
  timeout,
  size = 3,
}: FleetOptions): Promise<Fleet> {
  const { tokens = {}, ...rest } = config as { tokens?: object }
  const sites = await Promise.all(
    Array.from({ length: size }, () =>
      prepareSite({
        device,
        config: { oauth: { revocation_path: '/oauth/revoke' }, ...rest, tokens: { store: url, ...tokens } },
      }),
    ),
  )
  const options = timeout === undefined ? {} : { bounds: storeTimeout(timeout) }
  return { sites, sidecars: await Promise.all(sites.map((site) => site.serve(options))) }
}

/** Logs in, at a sidecar that may end meanwhile. Undefined if no complete response with tokens arrived. */
export async function tryLogin(sidecar: Served, password = PASSWORD): Promise<Tokens | undefined> {
  const response = await sidecar.login(password).catch(() => undefined)
  return response?.status === 200 ? tokensOf(response) : undefined
}

/** The same with a refresh token. */
export async function tryRefresh(sidecar: Served, refreshToken: string): Promise<Tokens | undefined> {
  const response = await sidecar.refresh(refreshToken).catch(() => undefined)
  return response?.status === 200 ? tokensOf(response) : undefined
}

/** How each of these tokens is answered at each sidecar: the statuses that occur. */
export async function statusesOf(sidecars: readonly Served[], tokens: readonly string[]): Promise<number[]> {
  const statuses = new Set<number>()
  for (const sidecar of sidecars)
    for (let at = 0; at < tokens.length; at += 50)
      for (const status of await Promise.all(tokens.slice(at, at + 50).map(sidecar.use))) statuses.add(status)
  return [...statuses].sort((a, b) => a - b)
}

/** Waits without an event to wait for: the load of a proof lasts a while. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

function median(figures: readonly number[]): number {
  return [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0
}

/** The median and the maximum of some durations (ms). */
export function summary(figures: readonly number[]): string {
  return `n ${figures.length}, p50 ${Math.round(median(figures))} ms, max ${Math.round(Math.max(...figures))} ms`
}

/** Prints a measured figure when `POSTERN_FLEET_FIGURES` is set. */
export function report(name: string, figure: string): void {
  if (process.env.POSTERN_FLEET_FIGURES === '1') console.log(`${name}: ${figure}`)
}
