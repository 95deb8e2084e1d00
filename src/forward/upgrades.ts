import { Agent, type ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createProxyServer, type ProxyServer } from 'http-proxy-3'
import { createDeadline, type UpstreamDeadlines } from '../device/deadlines.ts'
import { DeviceFault } from '../device/failure.ts'
import { createSocketOpener, type SocketOpener } from '../device/open-socket.ts'
import type { UpstreamTarget } from '../device/target.ts'
import type { UpgradeExchange } from '../http/exchange.ts'
import { type Fields, groupFields } from '../http/fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { isBug } from '../system/setup-error.ts'
import type { RoundTripEnd } from './round-trip.ts'

interface UpgradeRequest {
  /** Origin form, byte for byte. */
  readonly target: string
  /** The sanitised header, without the two fields of the upgrade itself. */
  readonly fields: Fields
  readonly exchange: UpgradeExchange
  /** The device's header fields as the client shall see them. */
  readonly project: (device: Fields, status: number) => string[]
  readonly onTunnel: () => void
}

/** The device says 101, and not to what (RFC 9110 §7.8). */
const NO_UPGRADE: RoundTripEnd = {
  kind: 'failed',
  error: new DeviceFault('http_upgrade_failed'),
  silent: false,
}

export interface Upgrades {
  /** Resolves when the tunnel has closed, or when there will be none. */
  open(request: UpgradeRequest): Promise<RoundTripEnd>
}

/**
 * WebSocket tunnels through `http-proxy-3`, from whose habits the client and the device are kept: it changes the
 * headers it is given (so it is given its own), it normalises the path (so the path is put back), it switches off the
 * client connection's idle timer (so that is set again), and it answers the client itself when the device refuses or
 * breaks (so those two listeners are replaced).
 */
export function createUpgrades(target: UpstreamTarget, deadlines: UpstreamDeadlines): Upgrades {
  const opener = createSocketOpener(target)
  return {
    async open(request) {
      const { exchange } = request
      // An attempt opens its connection at once; and of a client that has left, `http-proxy-3` would keep a note for ever.
      if (exchange.answered) return { kind: 'abandoned' }
      return new Promise((resolve) => {
        const connection = exchange.connection as Socket
        const give = (failure: UpstreamFailure): void => void attempt.destroy(new DeviceFault(failure))
        const connectLimit = createDeadline(deadlines.connect, () => give('connection_timeout'))
        const responseLimit = createDeadline(deadlines.response, () => give('http_response_timeout'))
        const stopWaiting = (): void => {
          connectLimit.close()
          responseLimit.close()
        }
        const attempt = startAttempt(opener, request, () => {
          connectLimit.close()
          responseLimit.restart()
        })
        connectLimit.restart()
        const settle = (end: RoundTripEnd): void => {
          stopWaiting()
          resolve(end)
        }
        exchange.watch()
        const [tunnel] = attempt.listeners('upgrade')
        attempt.removeAllListeners('upgrade')
        attempt.once('upgrade', (response: IncomingMessage, device: Socket, early: Buffer<ArrayBuffer>) => {
          stopWaiting()
          // Revoked meanwhile, and told so.
          if (exchange.answered) {
            device.destroy()
            settle({ kind: 'abandoned' })
            return
          }
          if (response.headers.upgrade?.toLowerCase() !== 'websocket') {
            device.destroy()
            settle(NO_UPGRADE)
            return
          }
          response.headers = switchingHeaders(response, request.project)
          const sent = exchange.tunnelled()
          // Whatever passes the tunnel, either way, passes the client's connection.
          connection.setTimeout(deadlines.idle, () => connection.destroy())
          request.onTunnel()
          exchange.onEnd(() => device.destroy())
          // Behind the device's last bytes the client's are worth nothing. Left unread, they would hide that it left.
          device.once('close', () => connection.end(() => connection.destroySoon()))
          if (sent.length > 0) device.write(sent)
          // `http-proxy-3` pipes both ways and passes on the end of each: a half-closed client still gets the last bytes.
          tunnel?.(response, device, early)
        })
        attempt.once('response', (response) => {
          stopWaiting()
          attempt.removeAllListeners('error')
          // Node takes a reset for the good end of a body without a length.
          attempt.once('error', (error) => {
            if (!response.complete) response.destroy(error)
          })
          // Every byte of the response passes the client's connection, so its idle timer catches a stall of either side.
          connection.setTimeout(deadlines.idle, () =>
            response.isPaused() ? exchange.cut() : response.destroy(),
          )
          relayRefusedUpgrade(response, request, settle)
        })
        attempt.once('error', (error) =>
          settle(exchange.ended ? { kind: 'abandoned' } : { kind: 'failed', error, silent: true }),
        )
        exchange.onEnd(({ status }) => {
          attempt.destroy()
          settle(status === 101 ? { kind: 'relayed' } : { kind: 'abandoned' })
        })
      })
    },
  }
}

/** Has `http-proxy-3` send the request, and takes back what it would do with an answer other than 101. */
function startAttempt(
  opener: SocketOpener,
  { target: path, fields, exchange }: UpgradeRequest,
  onOpen: () => void,
): ClientRequest {
  const connection = exchange.connection as Socket
  const { timeout = 0 } = connection
  const proxy = createProxy()
  let attempt: ClientRequest | undefined
  proxy.once('proxyReqWs', (outgoing) => {
    attempt = outgoing
    outgoing.path = path
  })
  proxy.ws(
    bareRequest(connection, fields),
    connection,
    Buffer.alloc(0),
    { target: { host: 'device', port: 80 }, agent: agentFor(opener.open(onOpen)) },
    () => {},
  )
  connection.setTimeout(timeout)
  if (attempt === undefined) throw new DeviceFault('http_upgrade_failed')
  attempt.removeAllListeners('response')
  attempt.removeAllListeners('error')
  return attempt
}

function bareRequest(connection: Socket, fields: Fields): IncomingMessage {
  const request = new IncomingMessage(connection)
  request.method = 'GET'
  request.url = '/'
  request.httpVersion = '1.1'
  request.headers = { ...groupFields(fields, 'kept'), connection: 'Upgrade', upgrade: 'websocket' }
  return request
}

function switchingHeaders(
  response: IncomingMessage,
  project: UpgradeRequest['project'],
): Record<string, string | string[]> {
  return {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    ...groupFields(project(response.rawHeaders, 101), 'kept'),
  }
}

/** The device said no: its answer reaches the client like any other, and a broken one is shown broken. */
function relayRefusedUpgrade(
  response: IncomingMessage,
  { exchange, project }: UpgradeRequest,
  settle: (end: RoundTripEnd) => void,
): void {
  const { statusCode: status = 502, statusMessage: reason = '' } = response
  if (status === 101) {
    response.destroy()
    settle(NO_UPGRADE)
    return
  }
  try {
    exchange.begin({ status, reason, fields: project(response.rawHeaders, status) })
  } catch (error) {
    // A status that HTTP does not have is the device's fault.
    response.destroy()
    const fault = isBug(error) ? error : new DeviceFault('http_protocol_error')
    settle({ kind: 'failed', error: fault, silent: false })
    return
  }
  exchange.onDrain(() => response.resume())
  response.on('data', (chunk: Buffer) => {
    if (!exchange.write(chunk)) response.pause()
  })
  response.once('error', () => {})
  response.once('close', () => {
    if (response.complete && response.errored === null) {
      exchange.end()
      settle({ kind: 'relayed' })
    } else {
      // First, because the end of the exchange settles it as abandoned.
      settle({ kind: 'broken', error: new DeviceFault('http_response_incomplete') })
      exchange.cut()
    }
  })
}

/**
 * A proxy for one request, so that its events are about that request alone. It listens on nothing and holds nothing.
 */
function createProxy(): ProxyServer {
  const proxy = createProxyServer()
  // It repeats errors of the client's connection, which has listeners of its own; unheard they would end the process.
  proxy.on('error', () => {})
  return proxy
}

/** Has Node use a connection that is there already. */
function agentFor(connection: Duplex): Agent {
  return Object.assign(new Agent({ keepAlive: false }), { createConnection: () => connection })
}
