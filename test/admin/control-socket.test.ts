import { tracingChannel } from 'node:diagnostics_channel'
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import type { Server } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { type MemoryStatus, openControlSocket, type ServicePlaces } from '../../src/admin/control-socket.ts'
import { createRecentRequests } from '../../src/record/recent-requests.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'

const MEMORY: MemoryStatus = { held: 0, limit: 1, plan: '', bounds: [{ bytes: 2, by: 'the machine' }] }

async function open(stateDir: string, tokens: { grants?: () => 'unavailable'; revoke?: () => never } = {}) {
  const failures: string[] = []
  const places: ServicePlaces[] = []
  const control = await openControlSocket(stateDir, {
    tokens: { grants: () => [], revoke: () => 0, ...tokens },
    handOut: () => 'unavailable',
    sharesTokens: false,
    requests: createRecentRequests(),
    inFlight: () => [],
    clock: stillClock(),
    listening: () => [],
    waiting: () => [],
    alarms: () => [],
    places: () => places,
    quirks: () => [],
    memory: () => MEMORY,
    onFailure: (_error, what) => failures.push(what),
  })
  const close = async (): Promise<void> => control[Symbol.asyncDispose]()
  closeLater(close)
  return { failures, places, close }
}

const ask = (stateDir: string, method: string, path: string, body = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const socketPath = join(stateDir, 'control.sock')
    request({ socketPath, method, path, agent: false }, (res) =>
      text(res).then((answer) => resolve(`${res.statusCode} ${answer.trim()}`), reject),
    )
      .once('error', reject)
      .end(body)
  })

const modeOf = (path: string): number => statSync(path).mode & 0o777

it('the control socket is at no moment open to other users, also in a folder that is', async () => {
  const stateDir = join(temporaryDirectory(), 'state')
  mkdirSync(stateDir)
  chmodSync(stateDir, 0o755)
  const bound: number[][] = []
  const listening = tracingChannel<{ server: Server }>('net.server.listen')
  const seen = {
    asyncEnd({ server }: { server: Server }) {
      const path = String(server.address())
      bound.push([modeOf(path), modeOf(dirname(path))])
    },
  }
  listening.subscribe(seen)
  const { close, failures } = await open(stateDir)
  listening.unsubscribe(seen)
  expect(bound).toHaveLength(1)
  for (const [socket = 0, folder = 0] of bound) expect(socket & folder & 0o077).toBe(0)
  expect([readdirSync(stateDir), modeOf(join(stateDir, 'control.sock'))]).toEqual([['control.sock'], 0o600])
  expect(await ask(stateDir, 'GET', '/status')).toBe(
    `200 {"alarms":[],"listening":[],"memory":${JSON.stringify(MEMORY)},"places":[],"quirks":[],"tokens":{"access":0,"refresh":0},"grants":[]}`,
  )
  await close()
  expect([readdirSync(stateDir), failures]).toEqual([[], []])
})

it('a control socket that another process uses, or a file in its place, stays as it is', async () => {
  const stateDir = temporaryDirectory()
  await open(stateDir)
  const second = await open(stateDir)
  await second.close()
  expect(second.failures).toEqual(['postern status, explain, issue, revoke and retry will not work'])
  expect(await ask(stateDir, 'GET', '/requests')).toBe('200 {"requests":[]}')
  const other = temporaryDirectory()
  writeFileSync(join(other, 'control.sock'), '')
  expect((await open(other)).failures).toEqual([
    'postern status, explain, issue, revoke and retry will not work',
  ])
  expect(existsSync(join(other, 'control.sock'))).toBe(true)
})

it('a command that fails is named by the log, and a wrong or long one is no failure of the sidecar', async () => {
  const stateDir = temporaryDirectory()
  const broken = () => {
    throw new TypeError('a bug')
  }
  const { failures } = await open(stateDir, { revoke: broken, grants: broken })
  expect(await ask(stateDir, 'POST', '/revoke', '{"all":true}')).toBe('500 {"error":"the command failed"}')
  expect(await ask(stateDir, 'GET', '/status')).toBe('500 {"error":"the command failed"}')
  expect(failures).toEqual(['postern revoke failed', 'postern status failed'])
  expect(await ask(stateDir, 'POST', '/revoke', `{"grant":"${'x'.repeat(100_000)}"}`)).toMatch(/^413 /)
  expect(await ask(stateDir, 'GET', '/revoke')).toMatch(/^404 /)
  expect(failures).toHaveLength(2)
})

it('H267 the control socket lets what broke the device be tried again', async () => {
  const stateDir = join(temporaryDirectory(), 'state')
  const { places } = await open(stateDir)
  for (const known of [true, false, true]) places.push({ condition: expect.fail, retry: () => known })
  expect(await ask(stateDir, 'POST', '/retry')).toBe('200 {"retried":2}')
  expect(await ask(stateDir, 'GET', '/retry')).toMatch(/^404 /)
})

it('H291 `status` answers without the grants when the shared store does not say which there are', async () => {
  const stateDir = join(temporaryDirectory(), 'state')
  await open(stateDir, { grants: () => 'unavailable' })
  expect(await ask(stateDir, 'GET', '/status')).toBe(
    `200 {"alarms":[],"listening":[],"memory":${JSON.stringify(MEMORY)},"places":[],"quirks":[],"tokens":null,"grants":null}`,
  )
})

it('a command whose body is longer than 4 KiB is told so, and does nothing', async () => {
  const stateDir = temporaryDirectory()
  const { failures } = await open(stateDir)
  for (const path of ['/revoke', '/issue'])
    expect(
      await ask(stateDir, 'POST', path, JSON.stringify({ all: true, more: 'x'.repeat(4096) })),
      path,
    ).toBe('413 {"error":"the command is longer than 4 KiB"}')
  expect(failures).toEqual([])
})
