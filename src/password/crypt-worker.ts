import { parentPort } from 'node:worker_threads'
import { cryptMatches } from './crypt-match.ts'
import type { CryptJob } from './crypt-workers.ts'

// One job at a time, one boolean back: `crypt-workers.ts` is the other end.
parentPort?.on('message', (job: CryptJob) => {
  parentPort?.postMessage(cryptMatches(job.credential, job.password))
})
