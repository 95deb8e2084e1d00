import { isIP } from 'node:net'
import { ErrorReply, RedisClient } from '@redis/client'
import type { StoreAddress, StoreConfig } from '../config/store-fields.ts'
import { type Clock, systemClock } from '../system/clock.ts'
import { NAMES } from '../system/lookup.ts'
import { readAuthorities, readSecretLine } from '../system/named-file.ts'
import { readPeersSafely } from '../system/peer-certificate.ts'
import { noAddress, noReply, ServerReplyError, type StoreReply, StoreUnavailable } from './shared-store.ts'

/** How to reach a shared store: the section `store`, and the decoded URL of `tokens.store`. */
export type StoreSettings = StoreConfig & StoreBounds & { readonly address: StoreAddress }

export interface StoreBounds {
  /** The longest time to accept a connection, and to answer (ms). After that, the shared store counts as down until it answers again. */
  readonly timeout: number
}

/** The bounds of every shared store. A test passes a short timeout to reach it, or a long one, because a busy machine answers late. */
export const STORE_BOUNDS: StoreBounds = { timeout: 1_000 }

/** Reads the files that a login needs. Rejects with a `SetupError` that names the key. */
export async function readLogin({ address, passwordFile, tls: { ca } }: StoreSettings) {
  return {
    password:
      passwordFile === undefined
        ? address.password
        : await readSecretLine('store.password_file', passwordFile),
    ca: !address.tls || ca === undefined ? undefined : await readAuthorities('store.tls.ca', ca),
  }
}

/** An open connection. Replies come in the order of the questions. */
export type Connection = Awaited<ReturnType<typeof connect>>

/** The reason for the end of a connection that is no longer needed. */
export const CLOSED = new Error('closed')

/** The maximum number of questions without a reply. Only a stalled server has so many: each waits for `timeout` at most. */
const PENDING_LIMIT = 10_000

/**
 * Connects and logs in, within `timeout`. Reads the files of the login anew: a rotated password or certificate needs no restart.
 * Rejects with a `SetupError`, with a `ServerReplyError`, or with the error of the system.
 *
 * @param signal ends the connection with its reason, an error
 */
export async function connect(settings: StoreSettings, signal: AbortSignal, clock: Clock = systemClock) {
  const { timeout, address } = settings
  const { server, database } = address
  const { password, ca } = await readLogin(settings)
  readPeersSafely()
  const life = new AbortController()
  const ended = Promise.withResolvers<Error>()
  let pending = 0
  const secure = {
    tls: true as const,
    minVersion: 'TLSv1.2' as const,
    ...(ca === undefined ? {} : { ca }),
    // SNI takes no addresses (RFC 6066 §3).
    ...('host' in server && isIP(server.host) === 0 ? { servername: server.host } : {}),
  }
  // `createClient` would make a class with every command of Redis anew for each server, which takes longer than a login.
  const client = new RedisClient({
    // Version 2 of the protocol has only the types of `StoreReply`: a map is a list of names and values.
    RESP: 2,
    database,
    // A user without a password (`nopass`) accepts any password.
    ...((address.user ?? password) === undefined
      ? {}
      : { username: address.user ?? 'default', password: password ?? 'none' }),
    // Both need commands that an ACL may forbid and that older servers lack.
    disableClientInfo: true,
    maintNotifications: 'disabled',
    disableOfflineQueue: true,
    // A timeout of the client would not end the wait for the reply to a question that was sent; `send` has its own.
    commandOptions: { timeout: 0 },
    // The client itself cannot abort a connection that is not open yet; the signal of the socket can.
    socket: {
      ...server,
      ...(address.tls ? secure : {}),
      lookup: NAMES.lookup,
      // None: the deadline below ends an attempt.
      connectTimeout: 0,
      reconnectStrategy: false,
      signal: life.signal,
    },
  })

  /** Ends the connection at once: every pending question rejects with the reason, and a late reply is lost. */
  function end(reason: Error): void {
    if (life.signal.aborted) return
    life.abort(reason)
    client.destroy()
    ended.resolve(reason)
  }

  client.on('error', (error) => end(asReplyError(error)))
  signal.addEventListener('abort', () => end(signal.reason), { once: true, signal: life.signal })
  if (signal.aborted) end(signal.reason)
  const host = 'host' in server ? server.host : ''
  const late = clock.after(timeout, () =>
    end(NAMES.isResolving(host) ? noAddress(host, timeout) : noReply(timeout)),
  )
  try {
    life.signal.throwIfAborted()
    await client.connect()
    life.signal.throwIfAborted()
  } catch (error) {
    end(asReplyError(error))
    NAMES.forget(host)
    // The client may have become ready after `end`.
    client.destroy()
    throw life.signal.reason
  } finally {
    late.cancel()
  }

  /** Sends `repetition` if the server does not know the script (`NOSCRIPT`). */
  const repeated = (repetition: readonly string[]) => (error: unknown) => {
    if (error instanceof ErrorReply && error.message.startsWith('NOSCRIPT'))
      return client.sendCommand<StoreReply>([...repetition])
    throw error
  }

  /**
   * Asks the server. Questions of one turn of the event loop travel in one packet. Rejects with a `ServerReplyError`, or with the
   * reason why the connection ended.
   *
   * @param within a question without a reply for this time (ms) ends the connection and all questions on it: a late reply must not be
   *   taken for the reply to another question
   * @param repetition the question to ask instead if the server does not know the script
   */
  async function send(
    question: readonly string[],
    within = timeout,
    repetition?: readonly string[],
  ): Promise<StoreReply> {
    if (pending === PENDING_LIMIT)
      throw new StoreUnavailable('connect', 'timeout', `${PENDING_LIMIT} questions wait for the server`)
    pending += 1
    const late = clock.after(within, () => end(noReply(within)))
    try {
      const asking = client.sendCommand<StoreReply>([...question])
      return await (repetition === undefined ? asking : asking.catch(repeated(repetition)))
    } catch (error) {
      throw asReplyError(error instanceof ErrorReply ? error : (life.signal.reason ?? error))
    } finally {
      late.cancel()
      pending -= 1
    }
  }

  return { send, ended: ended.promise, end }
}

function asReplyError(error: unknown): Error {
  if (error instanceof ErrorReply) return new ServerReplyError(error.message)
  return error instanceof Error ? error : new Error(String(error))
}
