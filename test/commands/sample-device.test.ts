import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createSampleDevice, type SampleDevice } from '../../src/commands/demo/sample-device.ts'
import { type MovableClock, passUntil, stillClock } from '../support/clock.ts'

let clock: MovableClock
let device: SampleDevice
let url: string

beforeEach(async () => {
  clock = stillClock()
  device = createSampleDevice({ clock, eventInterval: 5 })
  url = await device.start()
})
afterEach(() => device.stop())

test('the system page shows the uptime, and old firmware in `Server`', async () => {
  await clock.advance(42_900)
  const response = await fetch(`${url}/api/system`)
  expect(response.headers.get('server')).toBe('PowerDist-httpd/1.04')
  expect(await response.json()).toMatchObject({ model: 'PowerDist 8', uptime_seconds: 42 })
})

test('a change to a port is stored and appears in the list', async () => {
  const body = JSON.stringify({ enabled: false })
  const changed = await fetch(`${url}/api/ports/1`, { method: 'PUT', body })
  expect(await changed.json()).toEqual({ id: 1, label: 'outlet 1', enabled: false, watts: 0 })
  const again = await fetch(`${url}/api/ports/1`)
  expect(await again.json()).toMatchObject({ enabled: false })
  const list = await fetch(`${url}/api/ports`)
  expect(await list.json()).toMatchObject({ ports: { 0: { enabled: false }, 1: { enabled: true } } })
})

test.each(['{', '[]', 'null', '{"enabled":1}', '{"enabled":false,"watts":1}'])(
  'a bad change to a port is refused and changes nothing (%#)',
  async (body) => {
    const before = await (await fetch(`${url}/api/ports/1`)).text()
    const response = await fetch(`${url}/api/ports/1`, { method: 'PUT', body })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('the body must be')
    expect(await (await fetch(`${url}/api/ports/1`)).text()).toBe(before)
  },
)

test('unknown paths, unknown ports and names of object properties get 404 in JSON', async () => {
  for (const path of ['/', '/nothing', '/api/ports/9', '/constructor', '/__proto__', '//x']) {
    const response = await fetch(`${url}${path}`)
    expect([path, response.status]).toEqual([path, 404])
    expect(await response.json()).toHaveProperty('error')
  }
})

test('an uploaded firmware is answered with its size and digest', async () => {
  const image = Buffer.alloc(3_000_001, 'firmware')
  const response = await fetch(`${url}/api/firmware`, { method: 'POST', body: image })
  const sha256 = createHash('sha256').update(image).digest('hex')
  expect(await response.json()).toMatchObject({ size: image.length, sha256 })
})

test('events continue until the client leaves', async () => {
  const leave = new AbortController()
  const response = await fetch(`${url}/api/events`, { signal: leave.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  let text = ''
  async function read(): Promise<void> {
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (text.includes('id: 3\n')) break
    }
  }
  await passUntil(clock, read())
  leave.abort()
  expect(text).toMatch(/^id: 1\nevent: power\ndata: \{"uptime_seconds":0,"watts":\d+\}\n\nid: 2\n/)
})

test('a request for a number of events ends after that number', async () => {
  const text = await passUntil(clock, (await fetch(`${url}/api/events?count=3`)).text())
  expect(text.match(/^id: \d$/gm)).toEqual(['id: 1', 'id: 2', 'id: 3'])
})

test('the console answers its commands and echoes everything else', async () => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/console`)
  await once(socket, 'open')
  const ask = async (line: string | Buffer): Promise<string> => {
    socket.send(line)
    const [data] = await once(socket, 'message')
    return String(data)
  }
  expect(await ask('hello')).toBe('hello')
  expect(await ask(Buffer.from('bytes'))).toBe('bytes')
  expect(JSON.parse(await ask('ports'))).toHaveLength(8)
  socket.close()
  await once(socket, 'close')
})

test('a message to the console has 64 KiB at most', async () => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/console`)
  await once(socket, 'open')
  socket.send('x'.repeat(64 * 1024))
  const [data] = await once(socket, 'message')
  expect(String(data)).toHaveLength(64 * 1024)
  socket.send('x'.repeat(64 * 1024 + 1))
  const [code] = await once(socket, 'close')
  expect(code).toBe(1009)
})

test('an upgrade on any other path than the console is refused', async () => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/system`)
  const [error] = await once(socket, 'error')
  expect(String(error)).toContain('400')
})

test('the login page redirects to an absolute URL of the device', async () => {
  const response = await fetch(`${url}/login`, { redirect: 'manual' })
  expect([response.status, response.headers.get('location')]).toEqual([302, `${url}/login.html`])
  expect(await (await fetch(`${url}/login`)).text()).toContain('PowerDist 8')
})

test('stopping closes running event streams and consoles', async () => {
  const events = await fetch(`${url}/api/events`)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/console`)
  await once(socket, 'open')
  const socketClosed = once(socket, 'close')
  await device.stop()
  await socketClosed
  await expect(events.text()).rejects.toThrow()
  await expect(fetch(url)).rejects.toThrow()
})
