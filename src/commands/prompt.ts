import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { SetupError } from '../system/setup-error.ts'

export interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stderr: { readonly write: (text: string) => unknown }
}

/** Asks questions. A question resolves to undefined if the operator cancels with Ctrl-C or Ctrl-D. */
export interface Prompt {
  ask(question: string): Promise<string | undefined>
  /** Does not show what is typed. */
  askHidden(question: string): Promise<string | undefined>
  /** Resolves when the operator cancels, or after `close`. */
  readonly closed: Promise<void>
  close(): void
}

/** Puts the terminal into raw mode until `close`, so that nothing typed is shown by the terminal itself. */
export function openPrompt({ stdin, stderr }: Terminal): Prompt {
  let shown = false
  const echo = new Writable({
    write(chunk, _encoding, done) {
      if (shown) stderr.write(String(chunk))
      done()
    },
  })
  const terminal = createInterface({ input: stdin, output: echo, terminal: true, historySize: 0 })
  // Each line of a paste is an event of its own: what follows the answer may be a password.
  terminal.on('line', () => {
    shown = false
  })
  const lines = terminal[Symbol.asyncIterator]()
  const closed = new Promise<void>((resolve) => terminal.once('close', resolve))

  async function nextLine(): Promise<string | undefined> {
    const line = await lines.next()
    return line.done === true ? undefined : line.value
  }

  return {
    async ask(question) {
      shown = true
      terminal.setPrompt(question)
      terminal.prompt()
      return nextLine()
    },
    async askHidden(question) {
      stderr.write(question)
      const line = await nextLine()
      stderr.write('\n')
      return line
    },
    closed,
    close: () => terminal.close(),
  }
}

/** The questions of `init`, on a terminal. */
export interface Questions {
  readonly prompt: Prompt
  say(text: string): void
  /** Asks until there is an answer; an empty one means `initial`, unless that is empty too. Rejects if the operator cancels. */
  ask(question: string, initial?: string): Promise<string>
  /** Waits for work that the operator may cancel. */
  during<T>(work: Promise<T>): Promise<T>
  cancelled(): SetupError
  close(): void
}

export function openQuestions(terminal: Terminal): Questions {
  const prompt = openPrompt(terminal)
  const cancelled = (): SetupError => new SetupError('cancelled; nothing is written')
  return {
    prompt,
    say: (text) => void terminal.stderr.write(text),
    async ask(question, initial = '') {
      for (;;) {
        const answer = await prompt.ask(question)
        if (answer === undefined) throw cancelled()
        const given = answer.trim() || initial
        if (given !== '') return given
      }
    },
    during: (work) =>
      Promise.race([
        work,
        prompt.closed.then(() => {
          throw cancelled()
        }),
      ]),
    cancelled,
    close: prompt.close,
  }
}
