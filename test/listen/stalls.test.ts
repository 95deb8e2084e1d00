import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { Exchange, UpgradeExchange } from '../../src/http/exchange.ts'
import { startHttp1Server, startStoppableHttp1Server } from '../support/http1-server.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

function answer(exchange: Exchange | UpgradeExchange): void {
  exchange.reply({ status: 200, fields: [], body: 'served' })
}

/** The process stands still, as on a machine that is busy or suspended. What peers send meanwhile waits in the kernel. */
function stall(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** A connection on which one request was served. `bytes` follow the request. */
async function served(url: string, bytes = ''): Promise<RawPeer> {
  const peer = await rawConnection(url)
  const answered = once(peer.socket, 'data')
  peer.write(REQUEST + bytes)
  await answered
  expect(peer.received).toContain('served')
  peer.forget()
  return peer
}

// Timers that have become due during a stall fire before what has arrived is read.

it('a request that comes while a stopping process stands still finds the idle connection open', async () => {
  const { url, drain } = await startStoppableHttp1Server(answer)
  const peer = await served(url)
  drain()
  peer.write(REQUEST)
  stall(700)
  expect(await peer.closed).toMatch(/^HTTP\/1\.1 200 .*Connection: close.*served$/s)
})

it('a request that comes while the process stands still beyond the idle timeout is served', async () => {
  const peer = await served(await startHttp1Server(answer, { idleTimeout: 0 }))
  peer.write(REQUEST)
  stall(1_200)
  await peer.waitFor('served')
})

it('a head whose rest comes while the process stands still is not late', async () => {
  const peer = await served(await startHttp1Server(answer, { headerTimeout: 1_000 }), REQUEST.slice(0, 1))
  peer.write(REQUEST.slice(1))
  stall(1_200)
  expect(await peer.waitFor('served')).toMatch(/^HTTP\/1\.1 200 /)
})
