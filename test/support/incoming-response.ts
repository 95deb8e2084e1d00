import { BrokenTransfer, type Exchange, type Head, Response } from './message.ts'

/** A response as it arrives, for both protocols: the connection feeds it, the test awaits it. */
export interface IncomingResponse {
  readonly exchange: Pick<
    Exchange,
    'head' | 'response' | 'informational' | 'received' | 'waitFor' | 'waitForInformational'
  >
  readonly done: boolean
  inform(head: Head): void
  begin(head: Head): void
  data(chunk: Buffer): void
  finish(trailers: readonly string[]): void
  fail(why: string): void
}

/** @param signal when it aborts, the response counts as missing; `onGivenUp` then closes the connection */
export function createIncomingResponse(
  signal: AbortSignal | undefined,
  onGivenUp: () => void,
): IncomingResponse {
  const informational: Head[] = []
  const chunks: Buffer[] = []
  let head: Head | undefined
  let done = false
  let failure: Error | undefined
  let watchers: (() => boolean)[] = []
  const headed = Promise.withResolvers<Head>()
  const whole = Promise.withResolvers<Response>()
  // A test may await only one of the two promises: a rejection of the other must not count as unhandled.
  headed.promise.catch(() => {})
  whole.promise.catch(() => {})
  const body = (): Buffer => Buffer.concat(chunks)
  const giveUp = (): void => {
    incoming.fail('no complete response')
    onGivenUp()
  }
  signal?.addEventListener('abort', giveUp)

  function changed(): void {
    watchers = watchers.filter((look) => !look())
  }

  function until<T>(what: string, look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const watcher = (): boolean => {
        const value = look()
        if (value !== undefined) resolve(value)
        else if (done)
          reject(
            failure ?? new Error(`the response ended without ${what}: ${JSON.stringify(body().toString())}`),
          )
        return value !== undefined || done
      }
      if (!watcher()) watchers.push(watcher)
    })
  }

  const incoming: IncomingResponse = {
    get done() {
      return done
    },
    exchange: {
      head: headed.promise,
      response: whole.promise,
      informational,
      get received() {
        return body()
      },
      waitFor: (text) =>
        until(text, () => {
          const soFar = body().toString('utf8')
          return soFar.includes(text) ? soFar : undefined
        }),
      waitForInformational: (status) =>
        until(`a ${status}`, () => informational.find((interim) => interim.status === status)),
    },
    inform(interim) {
      informational.push(interim)
      changed()
    },
    begin(final) {
      head = final
      headed.resolve(final)
    },
    data(chunk) {
      chunks.push(chunk)
      changed()
    },
    finish(trailers) {
      if (done) return
      signal?.removeEventListener('abort', giveUp)
      if (head === undefined) {
        incoming.fail('the response ended')
        return
      }
      done = true
      whole.resolve(new Response(head, body(), trailers, informational))
      changed()
    },
    fail(why) {
      if (done) return
      signal?.removeEventListener('abort', giveUp)
      done = true
      failure = new BrokenTransfer(why, head && new Response(head, body(), [], informational))
      headed.reject(failure)
      whole.reject(failure)
      changed()
    },
  }
  return incoming
}
