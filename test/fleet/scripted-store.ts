import {
  type Script,
  type SharedStore,
  type StoreReply,
  StoreUnavailable,
  type StreamEntry,
} from '../../src/fleet/shared-store.ts'

/** A shared store whose answers a test gives. */
export interface ScriptedStore extends SharedStore {
  /** The questions so far, by the name of their script. */
  readonly asked: { readonly script: Script; readonly args: readonly string[] }[]
}

/** @param answer the answer of a script; it may wait, or throw `storeDown()` */
export function scriptedStore(
  answer: (script: Script, args: readonly string[]) => StoreReply | Promise<StoreReply>,
  follow: (id: string) => Promise<readonly StreamEntry[]> = () => new Promise(() => {}),
): ScriptedStore {
  const asked: ScriptedStore['asked'] = []
  const run: SharedStore['run'] = async (script, _keys, args) => {
    const texts = args.map(String)
    asked.push({ script, args: texts })
    return answer(script, texts)
  }
  return {
    prefix: '{test}:',
    asked,
    run,
    runDurably: run,
    follow: (_stream, id) => follow(id),
    up: true,
    trouble: undefined,
    close: async () => {},
  }
}

export function storeDown(): StoreUnavailable {
  return new StoreUnavailable('lookup', 'timeout', 'no answer')
}
