import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isWithheld, reasonOf } from '../system/setup-error.ts'
import type { CryptCredential } from './stored-line.ts'

/** The message to a worker: one hash to verify. */
export interface CryptJob {
  readonly credential: CryptCredential
  readonly password: string
}

/** The worker's file has the extension of this one: in the npm package, both are JavaScript. */
const ENTRY = new URL(`./crypt-worker${extname(import.meta.url)}`, import.meta.url)

/** Threads that verify hashes in JavaScript. Each starts when it is first needed, and stays until `close`. */
export function createCryptWorkers() {
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
    /** Verifies one hash. Rejects if the thread dies or `close` is called during the job. The caller bounds the concurrent jobs. */
    async matches(job: CryptJob): Promise<boolean> {
      if (closed) throw new Error('the password workers are closed')
      const worker = idle.pop() ?? startWorker()
      const settled = new AbortController()
      const { signal } = settled
      worker.ref()
      worker.postMessage(job)
      try {
        // The wait for the message also rejects if the thread fails.
        const ended = once(worker, 'exit', { signal }).then(() => Promise.reject(new Error('it has ended')))
        const [matches] = await Promise.race([once(worker, 'message', { signal }), ended])
        idle.push(worker)
        return matches === true
      } catch (cause) {
        throw new Error('a password worker failed', { cause })
      } finally {
        settled.abort()
        // An idle thread must not keep the process alive; a busy one must.
        worker.unref()
      }
    },
    /** Starts the first thread ahead of the first job. Returns the reason if Node's permission flags forbid threads. */
    start(): string | undefined {
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
    close(): void {
      closed = true
      for (const worker of all) void worker.terminate()
    },
  }
}
