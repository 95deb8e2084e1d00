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
import { limitFields } from '../http/limit-fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { isBug } from '../system/setup-error.ts'
import type { RoundTripEnd } from './round-trip.ts'

interface UpgradeRequest {
  /** Origin form, byte for byte. */
  readonly target: string
  /** The header for the device, without `Connection` and `Upgrade`. */
  readonly fields: Fields
  readonly exchange: UpgradeExchange
  /** Called when the connection to the device is open, so the request is sent. */
  readonly onSent: () => void
  /** Turns the device's header fields into the client's. */
  readonly project: (device: Fields, status: number) => Fields
  readonly onTunnel: () => void
}

/** The device sent 101 but not the `Upgrade` that was requested (RFC 9110 §7.8). */
const NO_UPGRADE: RoundTripEnd = {
  kind: 'failed',
  error: new DeviceFault('http_upgrade_failed'),
  silent: false,
}

export interface Upgrades {
  /** Resolves when the tunnel has closed, or when the upgrade failed. */
  open(request: UpgradeRequest): Promise<RoundTripEnd>
}

/**
 * WebSocket tunnels through `http-proxy-3`. Four of its habits are worked around:
 * - It changes the headers of the request, so it gets a copy.
 * - It normalises the path, so the original path is restored.
 * - It disables the idle timer of the client's connection, so the timer is set again.
 * - It responds to the client itself if the device refuses the upgrade or fails, so these two listeners are replaced.
 */
export function createUpgrades(target: UpstreamTarget, deadlines: UpstreamDeadlines): Upgrades {
  const opener = createSocketOpener(target)
  return {
    async open(request) {
      const { exchange } = request
      // An attempt opens its connection immediately, and `http-proxy-3` never frees its state for a client that has left.
      if (exchange.answered) return { kind: 'abandoned' }
      return new Promise((resolve) => {
        const connection = exchange.connection as Socket
        const fail = (failure: UpstreamFailure): void => void attempt.destroy(new DeviceFault(failure))
        const connectLimit = createDeadline(deadlines.connect, () => fail('connection_timeout'))
        const responseLimit = createDeadline(deadlines.response, () => fail('http_response_timeout'))
        const stopWaiting = (): void => {
          connectLimit.close()
          responseLimit.close()
        }
        const attempt = startAttempt(opener, request, () => {
          connectLimit.close()
          responseLimit.restart()
          request.onSent()
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
          // The grant was revoked meanwhile, and the client got a refusal.
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
          response.headers = switchingHeaders(response, request)
          const sent = exchange.tunnelled()
          // All data of the tunnel, in both directions, passes the client's connection.
          connection.setTimeout(deadlines.idle, () => connection.destroy())
          request.onTunnel()
          exchange.onEnd(() => device.destroy())
          // When the device has closed, the client's data is discarded. Unread data would hide that the client left.
          device.once('close', () => connection.end(() => connection.destroySoon()))
          if (sent.length > 0) device.write(sent)
          // `http-proxy-3` pipes both ways and passes on the end of each: a half-closed client still gets the last bytes.
          tunnel?.(response, device, early)
        })
        attempt.once('response', (response) => {
          stopWaiting()
          attempt.removeAllListeners('error')
          // For a body without a length, Node reports a reset as a normal end.
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
        exchange.onEnd(() => {
          attempt.destroy()
          settle(exchange.status === 101 ? { kind: 'relayed' } : { kind: 'abandoned' })
        })
      })
    },
  }
}

/** Sends the request by `http-proxy-3`, and removes its handling of a response other than 101. */
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
  { project, exchange }: UpgradeRequest,
): Record<string, string | string[]> {
  return {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    ...groupFields([...project(response.rawHeaders, 101), ...limitFields(exchange)], 'kept'),
  }
}

/** Relays the response of a device that refused the upgrade. If the response breaks off, the client sees it broken. */
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
    // An error that is not a bug is the device's fault, for example an invalid status.
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
      // Before `cut`, because the end of the exchange would settle it as abandoned.
      settle({ kind: 'broken', error: new DeviceFault('http_response_incomplete') })
      exchange.cut()
    }
  })
}

/**
 * A proxy for one request, so its events belong to that request. It opens no port and holds no resources.
 */
function createProxy(): ProxyServer {
  const proxy = createProxyServer()
  // It also emits the errors of the client's connection, which has its own listeners. Without a listener here they would end the
  // process.
  proxy.on('error', () => {})
  return proxy
}

/** An agent that makes Node use an existing connection. */
function agentFor(connection: Duplex): Agent {
  return Object.assign(new Agent({ keepAlive: false }), { createConnection: () => connection })
}
