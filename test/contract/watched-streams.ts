import { join } from 'node:path'
import { control } from '../../src/commands/control.ts'
import type { Status } from '../../src/commands/status.ts'
import { holdResponses, openStreams, type Stream } from '../process/streams.ts'
import { startDevice } from '../support/device.ts'
import { overlay, type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** How long the tokens live (ms): not as long as a response may be silent. */
export const ACCESS_LIFETIME = 30_000
export const LIFETIME = 50_000
export const SHORT_LIVED = { tokens: { access_lifetime: '30s', refresh_lifetime: '50s' } }

export interface Watched {
  readonly sidecar: TestSidecar
  readonly token: string
  readonly refreshToken: string
  readonly streams: readonly Stream[]
  readonly download: Stream
}

/** A sidecar with open streams of each kind and a download, of one grant. */
export async function watch({ config = {}, ...options }: SidecarOptions = {}): Promise<Watched> {
  const device = await startDevice()
  holdResponses(device)
  const sidecar = await startSidecar({
    ...options,
    transport: 'tls',
    device,
    config: overlay(SHORT_LIVED, config),
  })
  return { sidecar, ...(await open(sidecar)) }
}

async function open(sidecar: TestSidecar): Promise<Omit<Watched, 'sidecar'>> {
  const { access_token: token, refresh_token: refreshToken } = await sidecar.grant()
  const [events, download, more, tunnel] = await openStreams(sidecar, token)
  const streams = [events, more, tunnel].filter((stream) => stream !== undefined)
  return { token, refreshToken, streams, download: download as Stream } // `openStreams` opens four
}

export const ended = async ({ streams }: Pick<Watched, 'streams'>): Promise<void> => {
  await Promise.all(streams.map((stream) => stream.broken))
}

export const isOpen = ({ streams }: Pick<Watched, 'streams'>): boolean =>
  streams.every((stream) => stream.open)

export const stateDir = ({ directory }: TestSidecar): string => join(directory, 'state')

export const statusOf = (sidecar: TestSidecar): Promise<Status> =>
  control(stateDir(sidecar), { method: 'GET', path: '/status' })

export async function revoke(sidecar: TestSidecar, command: object): Promise<number> {
  const answer = await control(stateDir(sidecar), { method: 'POST', path: '/revoke', command })
  return 'revoked' in answer ? Number(answer.revoked) : 0
}
