import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { SetupError } from '../system/setup-error.ts'
import { fitted } from './columns.ts'

export interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stderr: { readonly write: (text: string) => unknown }
}

/** The error when the operator cancels, with Ctrl-C or Ctrl-D. */
export class Cancelled extends SetupError {}

/** Asks questions. Every question rejects with `Cancelled` when the operator cancels. */
export interface Prompt extends Disposable {
  say(text: string): void
  /** Asks until there is an answer. An empty answer means `initial`, unless `initial` is empty, too. */
  ask(question: string, initial?: string): Promise<string>
  /** Asks without showing the typed text. The answer may be empty. */
  askHidden(question: string): Promise<string>
  /** Shows a line when it is complete, and only if it is one of the expected answers: other text may be a password typed by mistake. */
  askUnseen(question: string, isAnswer: (given: string) => boolean): Promise<string>
  /** Waits for work that the operator may cancel. */
  during<T>(work: Promise<T>): Promise<T>
}

/**
 * Puts the terminal into raw mode until the prompt is disposed of, so that the terminal itself does not show typed text.
 *
 * @param cancelled the message of the error
 */
export function openPrompt({ stdin, stderr }: Terminal, cancelled = 'cancelled'): Prompt {
  let shown = false
  const echo = new Writable({
    write(chunk, _encoding, done) {
      if (shown) stderr.write(String(chunk))
      done()
    },
  })
  const terminal = createInterface({ input: stdin, output: echo, terminal: true, historySize: 0 })
  // Each line of pasted text is an event of its own: the line after the answer may be a password.
  terminal.on('line', () => {
    shown = false
  })
  const lines = terminal[Symbol.asyncIterator]()
  const closed = new Promise<void>((resolve) => terminal.once('close', resolve))

  async function nextLine(): Promise<string> {
    const line = await lines.next()
    if (line.done === true) throw new Cancelled(cancelled)
    return line.value
  }

  return {
    say: (text) => void stderr.write(fitted(text)),
    async ask(question, initial = '') {
      for (;;) {
        shown = true
        terminal.setPrompt(question)
        terminal.prompt()
        const given = (await nextLine()).trim() || initial
        if (given !== '') return given
      }
    },
    askHidden(question) {
      stderr.write(question)
      return nextLine().finally(() => void stderr.write('\n'))
    },
    async askUnseen(question, isAnswer) {
      stderr.write(question)
      const given = (await nextLine()).trim()
      stderr.write(isAnswer(given) ? `${given}\n` : '\n')
      return given
    },
    during: (work) => {
      const end = closed.then(() => {
        throw new Cancelled(cancelled)
      })
      return Promise.race([work, end])
    },
    [Symbol.dispose]: () => terminal.close(),
  }
}
