import { SetupError } from '../../system/setup-error.ts'
import { openPrompt, type Prompt, type Terminal } from '../prompt.ts'

/** The questions of `init`, on a terminal. */
export interface Questions {
  readonly prompt: Prompt
  /** Writes a text for the operator. */
  say(text: string): void
  /** Asks until there is an answer; an empty one means `initial`, unless that is empty too. Rejects if the operator cancels. */
  ask(question: string, initial?: string): Promise<string>
  /** Waits for work that the operator may cancel. */
  during<T>(work: Promise<T>): Promise<T>
  /** The error for a cancelled `init`. */
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
