import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createListeners } from '../../src/listen/listeners.ts'
import { mayComeLater } from '../../src/system/listen.ts'
import type { LateAddress, ListenAddress } from '../../src/system/listen-address.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

const LATE: ListenAddress = { kind: 'tcp', host: '192.0.2.1', port: 8443 }
const HERE: ListenAddress = { kind: 'tcp', host: '127.0.0.1', port: 0 }

/** Listeners whose pauses the test ends. */
function prepare(
  addresses: {
    readonly listen: ListenAddress
    readonly admin: ListenAddress | 'off'
    readonly redirect?: ListenAddress
  },
  waits = true,
) {
  const servers = { public: createServer(), redirect: createServer(), admin: createServer() }
  for (const server of Object.values(servers)) closeLater(() => void server.close())
  const opened: unknown[] = []
  const late: LateAddress[] = []
  let tries = 0
  const paused = Promise.withResolvers<void>()
  const listeners = createListeners(
    {
      listen: { address: addresses.listen, tls: 'off', redirect: addresses.redirect ?? 'off' },
      admin: { address: addresses.admin, tls: 'off' },
    },
    {
      ...servers,
      onOpen: (bound) => opened.push(bound),
      onLate: waits ? (each) => late.push(each) : undefined,
      clock: {
        pause(_time, signal) {
          tries += 1
          if (tries < 5) return Promise.resolve()
          paused.resolve()
          return new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
        },
      },
    },
  )
  return { listeners, opened, late, paused: () => paused.promise }
}

it('H108 an address that this machine does not have is tried until it comes, and logged once', async () => {
  const { listeners, opened, late, paused } = prepare({ listen: LATE, admin: HERE })
  const opening = listeners.open()
  await paused()
  expect(late).toEqual([{ key: 'listen.address', address: '192.0.2.1:8443' }])
  expect(listeners.waiting).toEqual(late)
  expect(listeners.listening).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+$/)])
  expect(opened).toEqual([])
  const refused = expect(opening).rejects.toThrow('the sidecar was stopped')
  await listeners.endOpening()
  await refused
})

it('H108 clients do not wait for an address of the admin listener', async () => {
  const { listeners, opened, late, paused } = prepare({ listen: HERE, admin: LATE })
  const opening = listeners.open().catch((error: unknown) => error)
  await paused()
  expect(late).toEqual([{ key: 'admin.address', address: '192.0.2.1:8443' }])
  expect(opened).toEqual([{ public: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), admin: null }])
  await listeners.endOpening()
  expect(await opening).toBeInstanceOf(SetupError)
})

it('the address of the public listener is the last one, also if the port that redirects opens later', async () => {
  const path = join(temporaryDirectory(), 'redirect')
  const { listeners } = prepare({ listen: HERE, admin: HERE, redirect: { kind: 'unix', path } })
  const bound = await listeners.open()
  expect(listeners.listening).toEqual([
    bound.admin?.replace('http://', ''),
    `unix:${path}`,
    bound.public.replace('http://', ''),
  ])
})

it('H108 another reason ends the start, also while the other address is waited for', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  closeLater(() => void holder.close())
  await new Promise((resolve) => holder.once('listening', resolve))
  const bound = holder.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0
  const { listeners } = prepare({ listen: { ...HERE, port }, admin: LATE })
  await expect(listeners.open()).rejects.toThrow('the port is in use (EADDRINUSE)')
})

it('an embedded sidecar, whose start reports everything, does not wait', async () => {
  const { listeners } = prepare({ listen: LATE, admin: HERE }, false)
  await expect(listeners.open()).rejects.toThrow('this machine has no address 192.0.2.1 (EADDRNOTAVAIL)')
})

it.each<readonly [code: string, host: string, isLate: boolean]>([
  ['EADDRNOTAVAIL', '192.0.2.1', true],
  ['EADDRNOTAVAIL', '2001:db8::1', true],
  ['EAI_AGAIN', 'device.example', true],
  ['EINVAL', 'fe80::1%wg0', true],
  ['EINVAL', 'fe80::1', false],
  ['ENOTFOUND', 'device.example', false],
  ['EADDRINUSE', '192.0.2.1', false],
  ['EACCES', '192.0.2.1', false],
])('%s of %s: it may come later: %s', (code, host, isLate) => {
  const cause = Object.assign(new Error(code), { code })
  expect(mayComeLater(new SetupError('x', { cause }), { kind: 'tcp', host, port: 1 })).toBe(isLate)
})
