import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isWithheld, reasonOf } from '../system/setup-error.ts'
import type { CryptCredential } from './stored-line.ts'

/** The message to a worker: one hash to verify. */
export interface CryptJob {
  readonly credential: CryptCredential
  readonly password: string
}

/** Threads that verify the hashes computed in JavaScript. Each starts when it is first needed and stays until `close`. */
export interface CryptWorkers {
  /** Rejects if the thread dies or `close` is called during the job. The caller bounds the number of concurrent jobs. */
  matches(job: CryptJob): Promise<boolean>
  /** Starts the first thread ahead of the first job. Returns the reason if Node's permission flags forbid threads. */
  start(): string | undefined
  close(): void
}

/** In the npm package, both files are JavaScript. */
const ENTRY = new URL(`./crypt-worker${extname(import.meta.url)}`, import.meta.url)

export function createCryptWorkers(): CryptWorkers {
  const all = new Set<Worker>()
  const idle: Worker[] = []
  let closed = false

  const startWorker = (): Worker => {
    // The thread inherits the flags of this process, so it has the same permissions.
    const worker = new Worker(ENTRY, { name: 'postern-crypt' })
    all.add(worker)
    // Without a listener, an error in an idle thread would end the process.
    worker.on('error', () => {})
    worker.once('exit', () => {
      all.delete(worker)
      const at = idle.indexOf(worker)
      if (at >= 0) idle.splice(at, 1)
    })
    return worker
  }

  return {
    matches(job) {
      if (closed) return Promise.reject(new Error('the password workers are closed'))
      const worker = idle.pop() ?? startWorker()
      const { promise, resolve, reject } = Promise.withResolvers<boolean>()
      const settled = (): void => {
        worker.off('message', onMessage).off('error', onError).off('exit', onExit)
        // An idle thread must not keep the process alive; a busy one must.
        worker.unref()
      }
      const onMessage = (matches: unknown): void => {
        settled()
        idle.push(worker)
        resolve(matches === true)
      }
      const onError = (cause: unknown): void => {
        settled()
        reject(new Error('a password worker failed', { cause }))
      }
      const onExit = (): void => onError(undefined)
      worker.on('message', onMessage).on('error', onError).on('exit', onExit)
      worker.ref()
      worker.postMessage(job)
      return promise
    },
    start() {
      if (all.size > 0) return undefined
      try {
        const worker = startWorker()
        worker.unref()
        idle.push(worker)
        return undefined
      } catch (error) {
        if (!isWithheld(error)) throw error
        return reasonOf(error)
      }
    },
    close() {
      closed = true
      for (const worker of all) void worker.terminate()
    },
  }
}
