import process from 'node:process'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Client } from './server.ts'
import { type Follower, WAYS, type Way } from './ways.ts'

/** What the thread with the followers is asked. Each question has one answer. */
export type Question =
  | { readonly kind: 'open'; readonly followers: number }
  | { readonly kind: 'learn'; readonly keys: readonly string[] }
  /** Answered when every follower has heard of the key, with the times (ns, `process.hrtime`). */
  | { readonly kind: 'told'; readonly key: string }
  /** How many followers have heard of the key. */
  | { readonly kind: 'heard'; readonly key: string }
  /** How many messages arrived since this was last asked. */
  | { readonly kind: 'messages' }
  /** Answered when every connection is back. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'close' }

export type Answer = readonly bigint[] | number | undefined

/** Keys of one MGET. */
const BATCH = 500

const { way: name, port } = workerData as { way: string; port: number } // `messages.ts` starts this thread
const way = WAYS.find((each) => each.name === name) as Way // it names one of them
const parent = parentPort as MessagePort // this is a thread
const followers: Follower[] = []
const times = new Map<string, bigint[]>()
let messages = 0
let awaited: string | undefined

function heard(key: string): void {
  messages += 1
  const of = times.get(key) ?? []
  of.push(process.hrtime.bigint())
  times.set(key, of)
  if (key === awaited) answerIfAllHeard(key)
}

function answerIfAllHeard(key: string): void {
  const of = times.get(key)
  if (of === undefined || of.length < followers.length) return
  awaited = undefined
  parent.postMessage(of)
}

async function learn(commands: Client, keys: readonly string[]): Promise<void> {
  for (let i = 0; i < keys.length; i += BATCH) await commands.mGet(keys.slice(i, i + BATCH))
}

async function answer(question: Exclude<Question, { kind: 'told' }>): Promise<Answer> {
  switch (question.kind) {
    case 'open':
      for (let i = 0; i < question.followers; i += 1) followers.push(await way.follow(port, heard))
      return followers.length
    case 'learn':
      await Promise.all(followers.map(({ commands }) => learn(commands, question.keys)))
      return undefined
    case 'heard':
      return times.get(question.key)?.length ?? 0
    case 'messages': {
      const count = messages
      messages = 0
      return count
    }
    case 'ready':
      await Promise.all(followers.map(({ commands }) => commands.ping()))
      return undefined
    case 'close':
      for (const follower of followers.splice(0)) follower.close()
      times.clear()
      return undefined
  }
}

parent.on('message', async (question: Question) => {
  if (question.kind !== 'told') parent.postMessage(await answer(question))
  else {
    awaited = question.key
    answerIfAllHeard(question.key)
  }
})
