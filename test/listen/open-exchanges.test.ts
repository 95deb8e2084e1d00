import { expect, it } from 'vitest'
import type { ListenLimits } from '../../src/listen/connection-caps.ts'
import type { Http2Exchange } from '../../src/listen/http2/http2-exchange.ts'
import { OpenExchanges } from '../../src/listen/http2/open-exchanges.ts'
import { Account } from '../../src/memory/account.ts'
import { stillClock } from '../support/clock.ts'

const IDLE_TIMEOUT = 60_000

function openOne() {
  const session = { frames: false, written: 0, unread: 0, bytes: [3] }
  const account = new Account({ limit: 1e9, clock: stillClock(), onStage() {}, onShed() {} })
  const holder = { working: true, atDevice: false, cutUnread: () => 0, cut() {} }
  const open = new OpenExchanges({
    clock: stillClock(),
    limits: { idleTimeout: IDLE_TIMEOUT, maxQueuedBytes: 1e6 } as ListenLimits, // it uses no others
    account,
    holding: account.open(account.client('192.0.2.1', false), holder),
    onFull() {},
    hasFrames: () => session.frames,
    written: () => session.written,
    onRead() {},
    onLeft() {},
  })
  const exchange = {
    index: -1,
    sentAt: 1,
    ended: false,
    unreadFor: () => session.unread,
    /** It is asked once at most, so that an endless loop fails. */
    get unreadBytes() {
      return session.bytes.pop() ?? expect.fail('it was asked twice')
    },
    /** As Node does: a cut stream is forgotten at once. */
    cut: () => open.onClosed(exchange, 'cut'),
  } as unknown as Http2Exchange // it uses no others
  open.enter(exchange)
  open.cutUnread(0)
  return { open, session, exchange }
}

it('C26 the unread bytes of a session are those of all its exchanges', () => {
  const { open } = openOne()
  open.enter({ index: -1, unreadBytes: 4 } as unknown as Http2Exchange) // it uses no others
  expect(open.unreadBytes()).toBe(7)
})

it('H43 the time without a read goes on after the cut, while the client takes no reset', () => {
  const { open, session } = openOne()
  Object.assign(session, { unread: IDLE_TIMEOUT, frames: true })
  expect(open.cutUnread(IDLE_TIMEOUT)).toBe(IDLE_TIMEOUT)
  expect(open.count).toBe(0)
  expect(open.cutUnread(IDLE_TIMEOUT + 3_000)).toBe(IDLE_TIMEOUT + 3_000)
})

it.each([
  ['it takes the reset', { frames: false }, 0],
  ['it reads what waits before it, and counts anew for the rest', { written: 100 }, 1_000],
])('H43 the time without a read is over when %s', (_name, change, later) => {
  const { open, session } = openOne()
  Object.assign(session, { unread: IDLE_TIMEOUT, frames: true })
  open.cutUnread(IDLE_TIMEOUT)
  expect(open.cutUnread(IDLE_TIMEOUT + 1_000)).toBeGreaterThan(IDLE_TIMEOUT)
  Object.assign(session, change)
  expect(open.cutUnread(IDLE_TIMEOUT + 3_000)).toBe(0)
  session.frames = true
  expect(open.cutUnread(IDLE_TIMEOUT + 4_000)).toBe(later)
})

it('H43 a client that does not take the reset of a revoked response reads nothing from then on', () => {
  const { open, session, exchange } = openOne()
  open.cutUnread(1_000)
  session.frames = true
  exchange.cut()
  expect(open.cutUnread(5_000)).toBe(4_000)
})
