import { isIP } from 'node:net'
import { ErrorReply, RedisClient } from '@redis/client'
import { noReply, ServerReplyError } from './failures.ts'
import { createLookup } from './lookup.ts'
import type { StoreReply } from './shared-store.ts'

/** A server, and how to log in to it. */
export interface Login {
  readonly at: { readonly host: string; readonly port: number } | { readonly path: string }
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly tls: { readonly ca: string | undefined; readonly insecure: boolean } | undefined
}

/** An open connection. Replies come in the order of the questions. */
export interface Connection {
  /**
   * Asks the server. Questions of one turn of the event loop travel in one packet. Rejects with a `ServerReplyError`, or with the
   * reason why the connection ended. A map in the reply is a list of names and values.
   */
  send(question: readonly string[]): Promise<StoreReply>
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<Error>
  /** Ends the connection at once: every pending question rejects with the reason, and a late reply is lost. */
  end(reason: Error): void
}

const lookup = createLookup()

/** `createClient` would make a class with every command of Redis anew for each server, which takes longer than a login. */
const createClient = RedisClient.factory({ RESP: 3 })

/** Why connections end that are not needed any more. */
export const CLOSED = new Error('closed')

/**
 * Connects and logs in. Rejects with a `ServerReplyError`, or with the error of the system.
 *
 * @param timeout of the whole (ms)
 */
export async function connect(login: Login, timeout: number, signal: AbortSignal): Promise<Connection> {
  const { at, user, password, database, tls } = login
  const life = new AbortController()
  const ended = Promise.withResolvers<Error>()
  let reason: Error | undefined
  const secure =
    tls === undefined
      ? {}
      : {
          tls: true as const,
          rejectUnauthorized: !tls.insecure,
          ...(tls.ca === undefined ? {} : { ca: tls.ca }),
          // SNI takes no addresses (RFC 6066 §3).
          ...('host' in at && isIP(at.host) === 0 ? { servername: at.host } : {}),
        }
  const client = createClient({
    database,
    // A user without a password accepts any, and without one the client would log in as `default`.
    ...(user === undefined && password === undefined
      ? {}
      : { username: user ?? 'default', password: password ?? 'none' }),
    // Both need commands that an ACL may forbid and that older servers lack.
    disableClientInfo: true,
    maintNotifications: 'disabled',
    disableOfflineQueue: true,
    // The caller has a timer for each question.
    commandOptions: { timeout: 0 },
    // The client itself cannot abort a connection that is not open yet; the signal of the socket can.
    socket: {
      ...at,
      ...secure,
      lookup,
      connectTimeout: timeout,
      reconnectStrategy: false,
      signal: life.signal,
    },
  })

  function end(why: Error): void {
    if (reason !== undefined) return
    reason = why
    life.abort()
    client.destroy()
    ended.resolve(why)
  }

  client.on('error', end)
  const stop = (): void => end(CLOSED)
  const timer = setTimeout(() => end(noReply(timeout)), timeout)
  signal.addEventListener('abort', stop, { once: true })
  ended.promise.then(() => signal.removeEventListener('abort', stop))
  if (signal.aborted) stop()
  try {
    if (reason === undefined) await client.connect()
    // `reason` may have been set meanwhile, which the compiler does not see.
    const early: Error | undefined = reason
    if (early !== undefined) throw early
  } catch (error) {
    const why = reason ?? asReplyError(error)
    end(why)
    // It may have become ready after `end`.
    client.destroy()
    throw asReplyError(why)
  } finally {
    clearTimeout(timer)
  }

  return {
    async send(question) {
      try {
        return plain(await client.sendCommand([...question]))
      } catch (error) {
        throw error instanceof ErrorReply ? asReplyError(error) : (reason ?? error)
      }
    },
    ended: ended.promise,
    end,
  }
}

function asReplyError(error: unknown): Error {
  if (error instanceof ErrorReply) return new ServerReplyError(error.message)
  return error instanceof Error ? error : new Error(String(error))
}

/** The reply in the types of `StoreReply`. */
function plain(reply: unknown): StoreReply {
  if (typeof reply === 'string' || typeof reply === 'number') return reply
  if (reply === null || reply === undefined || reply === false) return null
  if (Array.isArray(reply)) return reply.map(plain)
  if (reply instanceof ErrorReply) throw reply
  if (typeof reply === 'object') return Object.entries(reply).flatMap(([name, value]) => [name, plain(value)])
  return String(reply)
}
