import { type ChildProcess, fork } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { type Mutant, mutated } from './mutants.ts'
import type { Answer, Question } from './runner.ts'
import type { Subject } from './subject.ts'

/** What came of a mutant: the title of the test that killed it, and its file (path), if one failed. */
export interface Verdict {
  readonly mutant: Mutant
  readonly outcome: 'killed' | 'late' | 'lived'
  readonly by: string | undefined
  readonly file: string | undefined
}

/** Why a file without a test near it is not judged. */
export const NO_TEST = 'no test is near it: name some with --tests'

/** The tests of a mutant may take so many times as long as without it. */
const TIMES = 4

/** What tests take without a mutant. */
export type Pace = Pick<Answer, 'took' | 'tookEach'>

/**
 * A function that tells what tests take without a mutant, and runs each once for that.
 * It throws an Error if there is no test, or one fails.
 */
export function createPacer(
  runner: Runner,
): (subject: Pick<Subject, 'path' | 'text' | 'tests'>) => Promise<Pace> {
  const known = new Map<string, number>()
  return async ({ path, text, tests }) => {
    if (tests.length === 0) throw new Error(NO_TEST)
    const unknown = tests.filter((test) => !known.has(test))
    if (unknown.length > 0) {
      const answer = await runner.ask({ path, text, tests: unknown })
      if (answer === 'late' || answer.failure !== undefined) {
        throw new Error(`fails without a mutant: ${answer === 'late' ? 'too slow' : answer.failure}`)
      }
      for (const test of unknown) known.set(test, answer.tookEach[test] ?? 0)
    }
    const tookEach = Object.fromEntries(tests.map((test) => [test, known.get(test) ?? 0]))
    return { tookEach, took: Object.values(tookEach).reduce((sum, each) => sum + each, 0) }
  }
}

/**
 * Runs the tests of a file with each of its mutants, one after the other, the quickest first: most mutants are killed by the first file.
 * @param wait how long one test may wait (ms)
 */
export async function* judge(
  { path, text, mutants, tests }: Omit<Subject, 'name'>,
  { took, tookEach }: Pace,
  runner: Runner,
  wait: number,
): AsyncGenerator<Verdict> {
  const limit = TIMES * took + 2 * wait
  const order = tests.toSorted((a, b) => (tookEach[a] ?? 0) - (tookEach[b] ?? 0))
  for (const mutant of mutants) {
    const answer = await runner.ask({ path, text: mutated(text, mutant), tests: order }, limit)
    if (answer === 'late') yield { mutant, outcome: 'late', by: undefined, file: undefined }
    else {
      const { failure: by, file } = answer
      yield { mutant, outcome: by === undefined ? 'lived' : 'killed', by, file }
    }
  }
}

export interface Runner {
  /** Runs tests. `late`: they took longer than `limit` (ms), and were killed. */
  ask(question: Question, limit?: number): Promise<Answer | 'late'>
  /** Kills the tests that run, with every process that they started. */
  kill(): void
}

/**
 * Runs `runner.ts`, and starts it again when it was killed.
 * @param wait how long one test may wait (ms)
 */
export function createRunner(wait: number, program: string = join(import.meta.dirname, 'runner.ts')): Runner {
  let running: { readonly child: ChildProcess; readonly folder: string } | undefined

  async function start(): Promise<ChildProcess> {
    if (running !== undefined) return running.child
    // What killed tests leave behind is in a folder of their own.
    const folder = mkdtempSync(join(tmpdir(), 'mutate-'))
    // Servers of devices drop root and then read files of their test in it.
    chmodSync(folder, 0o711)
    const child = fork(program, [String(wait)], {
      // Leads a group, which is killed with it: Vitest's workers, and the programs that tests start.
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, TMPDIR: folder },
    })
    running = { child, folder }
    // It sends one when it is ready: starting is no part of the time that tests take.
    await messageOf(child)
    return child
  }

  function kill(): void {
    if (running === undefined) return
    const { child, folder } = running
    running = undefined
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }

  return {
    async ask(question, limit) {
      const child = await start()
      child.send(question)
      const answer = await messageOf(child, limit)
      if (answer === 'late') kill()
      return answer
    },
    kill,
  }
}

/** The next message of the runner, an answer. Rejects if the runner ends. */
function messageOf(child: ChildProcess, limit?: number): Promise<Answer | 'late'> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer | 'late'>()
  const timer = limit === undefined ? undefined : setTimeout(resolve, limit, 'late')
  // The runner sends nothing else.
  const answered = (message: unknown): void => resolve(message as Answer)
  const ended = (): void => reject(new Error('the process that runs the tests has ended'))
  child.once('message', answered).once('exit', ended)
  return promise.finally(() => {
    clearTimeout(timer)
    child.off('message', answered).off('exit', ended)
  })
}
