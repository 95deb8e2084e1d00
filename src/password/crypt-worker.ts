import { parentPort } from 'node:worker_threads'
import { cryptMatches } from './crypt-match.ts'
import type { CryptJob } from './crypt-workers.ts'

// The thread's side of `crypt-workers.ts`: each message is one job, each reply one boolean.
parentPort?.on('message', (job: CryptJob) => {
  parentPort?.postMessage(cryptMatches(job.credential, job.password))
})
