import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Exchange, UpgradeExchange } from '../../src/http/exchange.ts'
import type { ListenLimits } from '../../src/listen/connection-caps.ts'
import type { Http1Handlers } from '../../src/listen/http1/http1-connection.ts'
import { createHttp1Server } from '../../src/listen/http1/http1-server.ts'
import { createLingering } from '../../src/listen/linger.ts'
import { Account, type Holder } from '../../src/memory/account.ts'
import type { Clock } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'

/** An account that never fills. */
function roomyAccount(): Account {
  return new Account({ limit: 2 ** 40, clock: stillClock(), onStage() {}, onShed() {} })
}

/** A holder from which nothing is taken. */
const NO_HOLDER: Holder = {
  working: true,
  atDevice: false,
  cutUnread: () => 0,
  cut() {},
}

const CLIENT = { key: '127.0.0.1', peerTrusted: false, hops: 0, admitted: true }

/** Starts the HTTP/1 side of the public listener alone, without gate and device. Returns its URL; stops with the test. */
export async function startHttp1Server(
  onExchange: (exchange: Exchange | UpgradeExchange) => void,
  limits: Partial<ListenLimits> = {},
  clock: Clock = stillClock(),
): Promise<string> {
  return (await startStoppableHttp1Server(onExchange, limits, clock)).url
}

/** The same; `drain` is what a sidecar calls that stops, `account` is charged for what the client holds. `handlers` replace the usual ones. */
export async function startStoppableHttp1Server(
  onExchange: (exchange: Exchange | UpgradeExchange) => void,
  limits: Partial<ListenLimits> = {},
  clock: Clock = stillClock(),
  handlers: Partial<Pick<Http1Handlers, 'refusalMessage' | 'onBug'>> = {},
): Promise<{ readonly url: string; readonly drain: () => void; readonly account: Account }> {
  const account = roomyAccount()
  /** Writes the times of the exchange, as the gate does. */
  const timed = (exchange: Exchange | UpgradeExchange): void => {
    const start = clock.monotonic()
    const recorder = (): void => void Object.assign(exchange, { duration: clock.monotonic() - start })
    onExchange(Object.assign(exchange, { start, recorder }))
  }
  const http1 = createHttp1Server(
    { headerTimeout: 10_000, idleTimeout: 60_000, maxHeaderSize: 16_384, ...limits },
    {
      onExchange: timed,
      onUpgrade: timed,
      refusalMessage: ({ kind }) =>
        `HTTP/1.1 400 Bad Request\r\nContent-Length: ${kind.length}\r\n\r\n${kind}`,
      onBug(error) {
        throw error
      },
      ...handlers,
    },
    clock,
    createLingering(clock),
    { account, clientOf: () => CLIENT },
  )
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    closeLater(() => {
      socket.destroy()
    })
    http1.accept(socket, socket, account.open(account.client(CLIENT.key, false), NO_HOLDER))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
  })
  const { port } = server.address() as AddressInfo // listening on TCP
  return { url: `http://127.0.0.1:${port}`, drain: http1.drain, account }
}
