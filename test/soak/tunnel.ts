import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { bytesFor } from './random.ts'
import type { Visitor } from './visitor.ts'

export async function tunnel(visitor: Visitor): Promise<void> {
  const { context, address, tokens, random } = visitor
  if (tokens === undefined) return
  const from = context.now()
  const socket = new WebSocket(`${context.served.url.replace('http', 'ws')}/tunnel`, {
    rejectUnauthorized: false,
    localAddress: address,
    headers: { Authorization: `Bearer ${tokens.access_token}` },
    handshakeTimeout: 15_000,
  })
  socket.on('error', () => {})
  // Listens from the start, because the tunnel may close between two messages.
  const closed = gone(socket)
  closed.catch(() => {})
  try {
    await within(15_000, once(socket, 'open'))
    for (let i = 0; i < 5; i++) {
      const sent = bytesFor(random.below(1000), random.pick([0, 10, 5000, 200_000]))
      socket.send(sent)
      const [echoed] = await within(15_000, Promise.race([once(socket, 'message'), closed]))
      if (!Buffer.isBuffer(echoed) || !echoed.equals(sent)) throw new Error('the echo differs')
      await delay(random.below(200))
    }
    context.ledger.count('tunnel', 'echoed')
  } catch (error) {
    const disturbed = (['device', 'password'] as const).some((kind) =>
      context.disturbanceLog.affected(kind, from, context.now()),
    )
    if (disturbed || visitor.outdated) context.ledger.count('tunnel', 'disturbed')
    else context.ledger.fail('tunnel', String(error))
  } finally {
    if (random.below(2) === 0) socket.close()
    else socket.terminate()
    if (socket.readyState !== WebSocket.CLOSED)
      await within(15_000, once(socket, 'close')).catch(() => socket.terminate())
  }
}

async function gone(socket: WebSocket): Promise<never> {
  const [code] = await once(socket, 'close')
  throw new Error(`the tunnel closed with ${code}`)
}

async function within<T>(ms: number, waiting: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = delay(ms, undefined, { signal: timer.signal }).then(() =>
    Promise.reject(new Error(`nothing for ${ms} ms`)),
  )
  late.catch(() => {})
  try {
    return await Promise.race([waiting, late])
  } finally {
    timer.abort()
  }
}
