import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

/** A program that checks passwords. */
export interface TestHook {
  /** The path of its socket. */
  readonly socket: string
  readonly folder: string
  /** Every line that it has got. */
  readonly lines: string[]
  password: string
  /** Undefined: it gives none. */
  fingerprint: string | undefined
  /** In place of its usual answer to each line. */
  answer: ((line: string, peer: Socket) => unknown) | undefined
  /** Ends it. The socket is gone. */
  stop(): Promise<void>
  /** Listens again. */
  start(): Promise<void>
}

/** Starts a program that answers over a Unix socket in a folder of its own. */
export async function startHook(
  given: Partial<Pick<TestHook, 'password' | 'fingerprint'>> = {},
): Promise<TestHook> {
  const socket = join(temporaryDirectory(), 'check.sock')
  const lines: string[] = []
  const hook: TestHook = {
    socket,
    folder: dirname(socket),
    lines,
    password: 'right one',
    fingerprint: 'one',
    answer: undefined,
    async stop() {
      server.close()
      await once(server, 'close')
    },
    async start() {
      await once(server.listen(socket), 'listening')
    },
    ...given,
  }
  function usualAnswer(line: string): string {
    const question: Partial<Record<string, unknown>> = JSON.parse(line)
    if (question.fingerprint !== true && question.password !== hook.password) return 'wrong\n'
    return hook.fingerprint === undefined ? 'right\n' : `right ${hook.fingerprint}\n`
  }
  const server = createServer({ allowHalfOpen: true }, (peer) => {
    let received = ''
    peer
      .setEncoding('utf8')
      .on('error', () => {})
      .on('data', (text: string) => {
        received += text
      })
      .on('end', () => {
        // The connection ended without a question.
        if (received === '') {
          peer.end()
          return
        }
        lines.push(received)
        if (hook.answer === undefined) peer.end(usualAnswer(received))
        else hook.answer(received, peer)
      })
  })
  await hook.start()
  closeLater(() => void server.close())
  return hook
}
