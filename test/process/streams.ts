import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from '../support/client.ts'
import type { Device } from '../support/device.ts'
import { BrokenTransfer, type Exchange } from '../support/message.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import type { Served } from './serve.ts'

/** What the device has begun to answer and not ended, by path. */
export type Held = ReadonlyMap<string, ServerResponse>

/**
 * Lets a device hold its answers open: `/events…` a stream of unknown length, `/download…` one of 1 MB. Everything else
 * is answered at once, and WebSockets are echoed.
 */
export function holdAnswers(device: Device): Held {
  const held = new Map<string, ServerResponse>()
  device.handle((request, response) => {
    const { url = '' } = request
    if (url.startsWith('/events')) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    else if (url.startsWith('/download')) response.writeHead(200, { 'Content-Length': DOWNLOAD_SIZE })
    else return response.end('from the device')
    held.set(url, response)
    response.write('first piece\n')
  })
  acceptWebSockets(device)
  return held
}

export const DOWNLOAD_SIZE = 1_000_000

/** Something that goes on for as long as it may. */
export interface Stream {
  /** Resolves when it was broken off from outside; fails when it ended well. */
  readonly broken: Promise<void>
  /** Whether it still goes on. */
  readonly open: boolean
}

/** Everything that can stay open under a token: an event stream and a download in HTTP/1, one in HTTP/2, a WebSocket. */
export async function openStreams(sidecar: Served, token: string): Promise<readonly Stream[]> {
  return Promise.all([
    openAnswer(sidecar, token, '/events/1', 'tls'),
    openAnswer(sidecar, token, '/download/1', 'tls'),
    openAnswer(sidecar, token, '/events/2', 'h2'),
    openTunnel(sidecar, token),
  ])
}

async function openAnswer(
  { url }: Served,
  token: string,
  path: string,
  transport: 'tls' | 'h2',
): Promise<Stream> {
  const connection = await connect({ transport, url })
  const exchange = connection.start({ path, fields: ['Authorization', `Bearer ${token}`] })
  await exchange.waitFor('first piece')
  return streamOf(broken(exchange))
}

/** Resolves when an answer breaks off; fails when it ends as if it were whole. */
export async function broken({ response }: Exchange): Promise<void> {
  const end = await response.catch((error: unknown) => error)
  if (!(end instanceof BrokenTransfer)) throw new Error(`not broken: ${JSON.stringify(end)}`)
}

async function openTunnel({ url }: Served, token: string): Promise<Stream> {
  const { socket } = await openWebSocket(url, { token })
  const closed = once(socket, 'close')
  const echoed = once(socket, 'message')
  socket.send('through the tunnel')
  await echoed
  return streamOf(closed.then(() => {}))
}

function streamOf(ended: Promise<void>): Stream {
  let open = true
  const over = (): void => {
    open = false
  }
  ended.then(over, over)
  return {
    broken: ended,
    get open() {
      return open
    },
  }
}
