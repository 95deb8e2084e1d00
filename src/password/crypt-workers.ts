import { Worker } from 'node:worker_threads'
import { isWithheld, reasonOf } from '../system/node-permission.ts'
import type { CryptCredential } from './stored-line.ts'

/** What a worker is asked. */
export interface CryptJob {
  readonly credential: CryptCredential
  readonly password: string
}

/** Threads for the hashes that JavaScript computes: started when first needed, kept, and closed at the end. */
export interface CryptWorkers {
  /** Fails if the thread dies or `close` is called meanwhile. The caller bounds how many run at once. */
  matches(job: CryptJob): Promise<boolean>
  /** Starts the first thread, so that it is there for the first job; or says why Node's flags allow none. */
  withheld(): string | undefined
  close(): void
}

const ENTRY = new URL('./crypt-worker.ts', import.meta.url)

export function createCryptWorkers(): CryptWorkers {
  const all = new Set<Worker>()
  const idle: Worker[] = []
  let closed = false

  const start = (): Worker => {
    // With the flags of this process, so that it is held to the same permissions.
    const worker = new Worker(ENTRY, { name: 'postern-crypt' })
    all.add(worker)
    // A listener must stand at all times: without one, the failure of an idle thread would end the process.
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
      const worker = idle.pop() ?? start()
      const { promise, resolve, reject } = Promise.withResolvers<boolean>()
      const settled = (): void => {
        worker.off('message', onMessage).off('error', onError).off('exit', onExit)
        // An idle thread must not keep the process alive; one with a job must.
        worker.unref()
      }
      const onMessage = (answer: unknown): void => {
        settled()
        idle.push(worker)
        resolve(answer === true)
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
    withheld() {
      if (all.size > 0) return undefined
      try {
        const worker = start()
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
