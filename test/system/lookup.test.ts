import { once } from 'node:events'
import net from 'node:net'
import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { createLookup } from '../../src/system/lookup.ts'
import { stillClock } from '../support/clock.ts'

const HOME = [{ address: '127.0.0.1', family: 4 }]
const MOVED = [{ address: '127.0.0.2', family: 4 }]

/** Names whose look-ups the test answers, and the time that they see. */
function startNames() {
  const asked: string[] = []
  const answers: PromiseWithResolvers<typeof HOME>[] = []
  const clock = stillClock()
  const names = createLookup((host) => {
    asked.push(host)
    const answer = Promise.withResolvers<typeof HOME>()
    answers.push(answer)
    return answer.promise
  }, clock)
  /** The address that a connection gets, or the code of the error. */
  const ask = (host = 'device.example'): Promise<string> =>
    new Promise((resolve) => {
      names.lookup(host, {}, (error, address) => resolve(error?.code ?? String(address)))
    })
  const answer = (number: number, addresses = HOME): void => answers[number - 1]?.resolve(addresses)
  const fail = (number: number, code: string): void =>
    answers[number - 1]?.reject(Object.assign(new Error(code), { code }))
  return { names, clock, asked, ask, answer, fail }
}

it('H135 a name is asked for once at a time, however many attempts there are to connect', async () => {
  const { names, asked, answer } = startNames()
  const server = net.createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const { lookup } = names
  const sockets = [true, false, true].map((autoSelectFamily) =>
    net.connect({ host: 'store.example', port, lookup, autoSelectFamily }),
  )
  const connected = sockets.map((socket) => once(socket, 'connect'))
  await expect.poll(() => asked).toEqual(['store.example'])
  answer(1)
  await Promise.all(connected)
  expect(asked).toHaveLength(1)
  for (const socket of sockets) socket.destroy()
  server.close()
})

it('H135 the addresses of a name are kept for five seconds, and used while a new look-up runs', async () => {
  const { clock, asked, ask, answer } = startNames()
  const first = ask()
  answer(1)
  expect(await first).toBe('127.0.0.1')
  await clock.advance(4_999)
  expect(await ask()).toBe('127.0.0.1')
  expect(asked).toHaveLength(1)
  await clock.advance(1)
  expect([await ask(), await ask()]).toEqual(['127.0.0.1', '127.0.0.1'])
  expect(asked).toHaveLength(2)
  answer(2, MOVED)
  await expect.poll(() => ask()).toBe('127.0.0.2')
  expect(asked).toHaveLength(2)
})

it('H135 addresses of more than ten minutes are not used: they may be those of another machine', async () => {
  const { names, clock, ask, answer } = startNames()
  const first = ask()
  answer(1)
  await first
  await clock.advance(600_000)
  const second = ask()
  expect(names.isResolving('device.example')).toBe(true)
  answer(2, MOVED)
  expect(await second).toBe('127.0.0.2')
  expect(names.isResolving('device.example')).toBe(false)
})

it('H135 an address that could not be connected to is forgotten', async () => {
  const { names, asked, ask, answer } = startNames()
  const first = ask()
  answer(1)
  await first
  names.forget('device.example')
  const second = ask()
  answer(2, MOVED)
  expect(await second).toBe('127.0.0.2')
  expect(asked).toHaveLength(2)
})

it('H135 a failure is kept for a second, also when its connection has ended', async () => {
  const { names, clock, asked, ask, answer, fail } = startNames()
  const first = ask()
  fail(1, 'ENOTFOUND')
  expect(await first).toBe('ENOTFOUND')
  names.forget('device.example')
  await clock.advance(999)
  expect(await ask()).toBe('ENOTFOUND')
  expect(asked).toHaveLength(1)
  await clock.advance(1)
  const second = ask()
  answer(2)
  expect(await second).toBe('127.0.0.1')
})

it.each([
  ['EAI_AGAIN', '127.0.0.1'],
  ['ENOTFOUND', 'ENOTFOUND'],
])('H135 after a look-up that fails with %s, a known name gives %s', async (code, expected) => {
  const { clock, asked, ask, answer, fail } = startNames()
  const first = ask()
  answer(1)
  await first
  await clock.advance(5_000)
  await ask()
  fail(2, code)
  await nextTurn()
  expect(await ask()).toBe(expected)
  expect(asked).toHaveLength(2)
  await clock.advance(1_000)
  const third = ask()
  answer(3, MOVED)
  expect(['127.0.0.1', '127.0.0.2']).toContain(await third)
  expect(asked).toHaveLength(3)
})

it('H135 two look-ups run at a time, over all names: the threads that are left hash passwords', async () => {
  const { asked, ask, answer, fail } = startNames()
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((host) => ask(host))
  expect(asked).toEqual(['a', 'b'])
  fail(2, 'EAI_AGAIN')
  expect(await b).toBe('EAI_AGAIN')
  await expect.poll(() => asked).toEqual(['a', 'b', 'c'])
  answer(3)
  expect(await c).toBe('127.0.0.1')
  await expect.poll(() => asked).toEqual(['a', 'b', 'c', 'd'])
  answer(1)
  answer(4)
  expect([await a, await d]).toEqual(['127.0.0.1', '127.0.0.1'])
})

it('a name without an address fails every attempt', async () => {
  const { lookup } = createLookup(() => Promise.reject(new Error('getaddrinfo ENOTFOUND store.example')))
  const socket = net.connect({ host: 'store.example', port: 1, lookup })
  const [error] = await once(socket, 'error')
  expect(error.message).toBe('getaddrinfo ENOTFOUND store.example')
})
