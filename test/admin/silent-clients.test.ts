import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { readByTurns, streamBegan, streamEnds } from '../../src/admin/admin-wire.ts'
import { inTurn } from '../../src/admin/in-turn.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { TurnBudget } from '../../src/system/turn-budget.ts'
import { stillClock } from '../support/clock.ts'
import { socketPair } from '../support/raw.ts'
import { hasRead } from '../support/waiting.ts'

/** A connection whose client has sent a request; it reads only what the test lets it read. */
async function request(onRequest: RequestListener) {
  const clock = stillClock()
  const turns = new TurnBudget()
  const server = createServer({ keepAliveTimeout: 0 }, (req, res) =>
    inTurn(turns, req, res, () => onRequest(req, res)),
  )
  const { from, to } = await socketPair()
  readByTurns(server, clock)(to, turns)
  await clock.advance(5_000)
  const asked = once(server, 'request')
  from.pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await asked
  await settled(to)
  return { clock, from, to }
}

/** The kernel takes no more of what is queued. */
async function settled(socket: Socket): Promise<void> {
  const taken = (): number => socket.bytesWritten - socket.writableLength
  for (let before = -1; taken() > before; ) {
    before = taken()
    for (let i = 0; i < 10; i += 1) await nextTurn()
  }
}

/** More than the buffers of the kernel take, in pieces that a client can take one by one. */
const PIECES = Array.from({ length: 64 }, () => Buffer.alloc(1 << 20))

it('H155 a client that reads nothing of its response is closed after ten seconds, and one that reads is not', async () => {
  const { clock, from, to } = await request((_, res) => {
    for (const piece of PIECES) res.write(piece)
  })
  await clock.advance(9_999)
  expect(to.destroyed).toBe(false)
  for (from.resume(); from.bytesRead < 8 << 20; ) await once(from, 'data')
  from.pause()
  await settled(to)
  await clock.advance(9_999)
  expect(to.destroyed).toBe(false)
  await clock.advance(1)
  expect(to.destroyed).toBe(true)
})

it('H154 no silence ends a stream, but a client has two seconds to read the end of it', async () => {
  let end = (): void => expect.fail('no request came')
  const { clock, to } = await request((req, res) => {
    streamBegan(req.socket)
    for (const piece of PIECES) res.write(piece)
    end = () => {
      streamEnds(req.socket)
      res.end()
    }
  })
  await clock.advance(3_600_000)
  expect(to.destroyed).toBe(false)
  end()
  await clock.advance(1_999)
  expect(to.destroyed).toBe(false)
  await clock.advance(1)
  expect(to.destroyed).toBe(true)
})

it('H155 a request that arrives bit by bit behind a response has ten seconds', async () => {
  const { clock, from, to } = await request((_, res) => res.end('answered'))
  await once(from.resume(), 'data')
  await settled(to)
  await clock.advance(9_999)
  from.write('GET /')
  await hasRead(to, to.bytesRead + 5)
  expect(to.destroyed).toBe(false)
  await clock.advance(1)
  expect(to.destroyed).toBe(true)
})
