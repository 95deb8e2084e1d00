import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { StreamedResponse } from '../../src/listen/streamed-response.ts'
import { closeLater } from '../support/cleanup.ts'

/** Answers with what `respond` makes of the response, and gives what a client receives. */
async function answerOf(respond: (response: StreamedResponse) => Promise<void> | void): Promise<Response> {
  const server = createServer((_request, res: ServerResponse) => {
    const response = new StreamedResponse(res)
    response.begin({ status: 200, reason: 'OK', fields: [] }, ['X-Own', 'yes'])
    void respond(response)
  }).listen(0, '127.0.0.1')
  closeLater(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) // listening on TCP
}

const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
const LONG = Buffer.concat(Array.from({ length: 100 }, () => EVERY_BYTE))

it.each([
  ['nothing', []],
  ['one short piece', [EVERY_BYTE]],
  ['one long piece', [LONG]],
  ['short pieces', [EVERY_BYTE, EVERY_BYTE, EVERY_BYTE]],
  ['a short piece and a long one', [EVERY_BYTE, LONG]],
  ['a long piece and a short one', [LONG, EVERY_BYTE]],
])('C21 a response of %s arrives byte for byte, at once or in turns', async (_, pieces) => {
  const atOnce = await answerOf((response) => {
    for (const piece of pieces) response.write(piece)
    response.end()
  })
  expect(atOnce.headers.get('x-own')).toBe('yes')
  expect(Buffer.from(await atOnce.arrayBuffer())).toEqual(Buffer.concat(pieces))

  const inTurns = await answerOf(async (response) => {
    for (const piece of pieces) {
      await turn()
      response.write(piece)
    }
    await turn()
    response.end()
  })
  expect(Buffer.from(await inTurns.arrayBuffer())).toEqual(Buffer.concat(pieces))

  const lastAtEnd = await answerOf((response) => {
    for (const piece of pieces.slice(0, -1)) response.write(piece)
    response.end(pieces.at(-1))
  })
  expect(Buffer.from(await lastAtEnd.arrayBuffer())).toEqual(Buffer.concat(pieces))
})

it('C23 the head of a stream leaves before there is any of its body, and a first piece before there is a second', async () => {
  const { promise: goOn, resolve: next } = Promise.withResolvers<void>()
  const answer = await answerOf(async (response) => {
    await goOn
    response.write(Buffer.from('first'))
  })
  expect(answer.status).toBe(200)
  next()
  const { value } = (await answer.body?.getReader().read()) ?? {}
  expect(Buffer.from(value ?? []).toString()).toBe('first')
})
