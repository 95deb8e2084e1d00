import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from '../support/client.ts'
import type { Device } from '../support/device.ts'
import { BrokenTransfer, type Exchange } from '../support/message.ts'
import { acceptWebSockets, openWebSocket, type WebSocketRequest } from '../support/websocket.ts'
import type { Served } from './serve.ts'

/** The responses that the device has begun and not ended, by path. */
export type Held = ReadonlyMap<string, ServerResponse>

/**
 * Makes a device begin a response and leave it open: `/events…`, `/log…` and `/backup…` have no length, `/download…` has 1 MB. It responds to
 * every other request at once, and echoes WebSocket messages.
 */
export function holdResponses(device: Device): Held {
  const held = new Map<string, ServerResponse>()
  device.handle((request, response) => {
    const { url = '' } = request
    if (url.startsWith('/events')) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    else if (url.startsWith('/log')) response.writeHead(200, { 'Content-Type': 'text/plain' })
    else if (url.startsWith('/backup'))
      response.writeHead(200, { 'Content-Disposition': 'attachment; filename=backup.tar' })
    else if (url.startsWith('/download')) response.writeHead(200, { 'Content-Length': DOWNLOAD_SIZE })
    else return response.end('from the device')
    held.set(url, response)
    response.write('first piece\n')
  })
  acceptWebSockets(device)
  return held
}

export const DOWNLOAD_SIZE = 1_000_000

/** A response or tunnel that stays open. */
export interface Stream {
  /** Resolves when the sidecar breaks it off; rejects when it ends cleanly. */
  readonly broken: Promise<void>
  /** Whether it is still open. */
  readonly open: boolean
}

/** Opens each kind of long exchange under a token: event stream and download in HTTP/1, event stream in HTTP/2, WebSocket. */
export async function openStreams(sidecar: Pick<Served, 'url'>, token: string): Promise<readonly Stream[]> {
  return Promise.all([
    openResponse(sidecar, bearer(token), '/events/1', 'tls'),
    openResponse(sidecar, bearer(token), '/download/1', 'tls'),
    openResponse(sidecar, bearer(token), '/events/2', 'h2'),
    openTunnel(sidecar, bearer(token)),
  ])
}

/** @param credential the field that admits the request */
export async function openResponse(
  { url }: Pick<Served, 'url'>,
  credential: readonly string[],
  path: string,
  transport: 'http1' | 'tls' | 'h2',
  from?: string,
): Promise<Stream> {
  const connection = await connect({ transport, url, ...(from === undefined ? {} : { from }) })
  const exchange = connection.start({ path, fields: credential })
  await exchange.waitFor('first piece')
  return streamOf(broken(exchange))
}

/** Resolves when a response breaks off; rejects when it looks complete. */
export async function broken({ response }: Exchange): Promise<void> {
  const end = await response.catch((error: unknown) => error)
  if (!(end instanceof BrokenTransfer)) throw new Error(`not broken: ${JSON.stringify(end)}`)
}

export const bearer = (token: string): readonly string[] => ['Authorization', `Bearer ${token}`]

export async function openTunnel(
  { url }: Pick<Served, 'url'>,
  credential: readonly string[],
  request: Pick<WebSocketRequest, 'path' | 'from'> = {},
): Promise<Stream> {
  const headers = Object.fromEntries(
    credential.flatMap((name, at) => (at % 2 === 0 ? [[name, credential[at + 1] ?? '']] : [])),
  )
  const { socket } = await openWebSocket(url, { ...request, headers })
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
