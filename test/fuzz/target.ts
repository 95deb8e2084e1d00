import type fc from 'fast-check'
import { type Bed, makeBed } from './bed.ts'
import type { Case, Setting } from './case.ts'
import { type ScriptedDevice, startScriptedDevice, type WitnessDevice } from './device.ts'
import { type NginxDevice, startNginxDevice } from './nginx.ts'

/** A sidecar and the device behind it. */
export interface Scene<D extends WitnessDevice = ScriptedDevice> {
  readonly bed: Bed
  readonly device: D
}

/** The scenes of one setting, started at first use. */
export interface Scenes {
  readonly setting: Setting
  scripted(): Promise<Scene>
  nginx(): Promise<Scene<NginxDevice>>
  /** The scenes that have been started. */
  started(): Promise<readonly Scene<WitnessDevice>[]>
}

/** Plays one case. Resolves with the violations of the contract. */
export type PlayCase = (item: Case) => Promise<string[]>

/** One kind of bytes to send to the sidecar. */
export interface Target {
  readonly name: string
  readonly settings: readonly Setting[]
  readonly cases: fc.Arbitrary<Case>
  open(scenes: Scenes): Promise<PlayCase>
}

export const CLEARTEXT: Setting = { transport: 'http1', parser: 'strict' }
export const ENCRYPTED: Setting = { transport: 'h2', parser: 'tolerant' }

export function createScenes(setting: Setting): Scenes {
  const running: Promise<Scene<WitnessDevice>>[] = []
  function once<D extends WitnessDevice>(start: () => Promise<D>): () => Promise<Scene<D>> {
    let scene: Promise<Scene<D>> | undefined
    return () => {
      if (scene === undefined) {
        scene = start().then(async (device) => ({ device, bed: await makeBed(setting, device) }))
        running.push(scene)
      }
      return scene
    }
  }
  return {
    setting,
    scripted: once(startScriptedDevice),
    nginx: once(startNginxDevice),
    started: () => Promise.all(running),
  }
}
