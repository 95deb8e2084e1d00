import { expect, it, onTestFinished } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { type AttackKind, startAttack } from './attack.ts'

const CONNECTIONS = 2

type Figures = Awaited<ReturnType<TestSidecar['figures']>>

const stays = (figure: Figures): boolean =>
  figure('postern_connections') === CONNECTIONS && figure('postern_upstream_in_flight') <= CONNECTIONS
const isCut =
  (reason: string) =>
  (figure: Figures): boolean =>
    figure('postern_connections_cut_total', { reason }) > CONNECTIONS

it.each<readonly [AttackKind, 'stays' | 'is cut', (figure: Figures) => boolean]>([
  ['idle', 'stays', stays],
  ['zero windows', 'stays', stays],
  ['rapid reset', 'is cut', isCut('max_resets')],
  ['rapid reset with a token', 'is cut', isCut('max_resets')],
  ['PING', 'is cut', isCut('max_control_frames')],
  ['SETTINGS', 'is cut', isCut('max_control_frames')],
  ['CONTINUATION', 'is cut', isCut('protocol_error')],
])('an attack by %s %s, and reconnects what was cut', async (kind, fate, sign) => {
  const body = Buffer.alloc(kind === 'zero windows' ? 16 << 20 : 1)
  const device = await startDevice((_request, response) => response.end(body))
  const sidecar = await startSidecar({ transport: 'tls', device })
  const plan = {
    kind,
    port: Number(new URL(sidecar.url).port),
    connections: CONNECTIONS,
    rate: 100,
    addresses: 'many',
    network: 1,
    token: await sidecar.token(),
    path: '/',
  } as const
  const attack = await startAttack(plan, temporaryDirectory())
  onTestFinished(async () => void (await attack.stop()))
  const seen = async (): Promise<boolean> => {
    const { opened } = await attack.report()
    const figure = await sidecar.figures()
    // The sidecar forwards no request that arrives together with its reset, so it must read some of them before the reset.
    const reached = kind !== 'rapid reset with a token' || device.requests.length > 0
    return (fate === 'stays' ? opened === CONNECTIONS : opened > CONNECTIONS) && sign(figure) && reached
  }
  await expect.poll(seen).toBe(true)
  if (kind === 'zero windows') await expect.poll(() => device.requests.length).toBe(CONNECTIONS)
  const { opened, closed } = await attack.stop()
  expect(opened - closed).toBeLessThanOrEqual(CONNECTIONS)
  if (fate === 'stays') expect([opened, closed]).toEqual([CONNECTIONS, 0])
  else expect(closed).toBeGreaterThan(0)
  expect((await sidecar.metric('postern_auth_failures_total')) > 0).toBe(kind === 'idle')
})
