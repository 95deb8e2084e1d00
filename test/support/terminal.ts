import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeLater } from './cleanup.ts'
import { needs } from './tools.ts'

/** A program that ran on a terminal to its end. */
export interface Session {
  readonly code: number
  /** All that the terminal showed, with LF as line ends. */
  readonly screen: string
}

/** A text to wait for, and what to type when it is shown, at once or later. A function is called when it is shown. */
export type Turn = readonly [shown: string, typed: string | Promise<string> | (() => Promise<string>)]

/** Runs a command on a terminal, and types each answer when its question is shown. Throws if a question never was. */
export async function runOnTerminal(
  command: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly term?: string },
  ...dialogue: readonly Turn[]
): Promise<Session> {
  needs('script')
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    ...options,
    env: { ...options.env, TERM: options.term ?? 'dumb' },
  })
  closeLater(() => void child.kill())
  // A program may end before an answer is typed. What it showed and its exit code tell whether it should have.
  child.stdin.on('error', () => {})
  const turns = [...dialogue]
  let screen = ''
  let read = 0
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    for (;;) {
      const [shown, typed] = turns[0] ?? []
      const at = shown === undefined ? -1 : screen.indexOf(shown, read)
      if (at < 0 || shown === undefined || typed === undefined) return
      read = at + shown.length
      turns.shift()
      void Promise.resolve(typeof typed === 'function' ? typed() : typed).then((keys) =>
        child.stdin.write(keys),
      )
    }
  })
  const [code] = await once(child, 'close')
  screen = screen.replaceAll('\r', '')
  if (turns.length > 0) throw new Error(`"${turns[0]?.[0]}" was never shown:\n${screen}`)
  return { code, screen }
}
