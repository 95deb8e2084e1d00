import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { Conversation } from '../../src/verify/conversation.ts'
import { UNSUPPORTED_GRANT } from '../../src/verify/question.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { movedTime, runOptions } from './a-run.ts'

/** A port that closes each connection when its request arrives, and what `postern verify` knows of it. */
async function closing(): Promise<{
  readonly conversation: Conversation
  readonly stop: () => Promise<unknown>
}> {
  const port = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.destroy()))
  port.listen(await unusedPort(), '127.0.0.1')
  await once(port, 'listening')
  const { port: number } = port.address() as AddressInfo // a TCP server's address is never a string
  const options = runOptions(`http://127.0.0.1:${number}`, 'geheim')
  const conversation = new Conversation(options, movedTime(), new AbortController().signal, () => {})
  const stop = () => once(port.close(), 'close')
  closeLater(() => {
    conversation[Symbol.dispose]()
    port.close()
  })
  return { conversation, stop }
}

it('a server that closes the connection on many requests is still there, alone and in a burst', async () => {
  const { conversation } = await closing()
  for (let i = 0; i < 20; i += 1) expect((await conversation.send(UNSUPPORTED_GRANT)).status).toBe(0)
  const client = conversation.http1(10)
  const burst = await Promise.all(
    Array.from({ length: 50 }, () => conversation.send(UNSUPPORTED_GRANT, client)),
  )
  expect(new Set(burst.map(({ status }) => status))).toEqual(new Set([0]))
})

it('a server that is gone is asked five times, with a pause, and a burst does not count', async () => {
  const { conversation, stop } = await closing()
  await stop()
  const client = conversation.http1(10)
  await Promise.all(Array.from({ length: 20 }, () => conversation.send(UNSUPPORTED_GRANT, client)))
  for (let i = 1; i <= 4; i += 1) expect((await conversation.send(UNSUPPORTED_GRANT)).unreachable).toBe(true)
  await expect(conversation.send(UNSUPPORTED_GRANT)).rejects.toThrow(
    /^http:\S+ has not responded since 20\S+Z: no response: connect ECONNREFUSED/,
  )
})
