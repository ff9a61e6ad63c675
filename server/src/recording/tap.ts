// The recorder of a session. The gateway passes on what it sees; each channel (channel-recorder.ts) begins a recording
// when a program has a terminal and the namespace wants its sessions recorded. Switching that off ends recordings at
// once, switching it on begins them with the next output. When a recording cannot be written, the session ends, or
// continues unrecorded where the namespace chose so; `onFailed` says which.
import {
  channelRecorder,
  type ChannelRecorder,
  type RecordedSession,
  type SwitchableRecorder,
} from './channel-recorder.ts'
import { masker } from './masking.ts'
import { finderOf } from './shape-finder.ts'
import type { TerminalScreen } from './terminal-screen.ts'

/** All channels of one session. */
export interface SessionRecorder extends AsyncDisposable {
  /** `screen`: of the channel's terminal, if it has one, which shows the output as soon as it is recorded. */
  channel(screen?: () => TerminalScreen | undefined): ChannelRecorder
  /** The text with its secrets masked, where the namespace masks them. */
  mask(text: string): string
  /** The settings of the namespace have changed. */
  apply(settings: RecordingSettings): void
}

/** How a namespace wants its sessions recorded. */
export interface RecordingSettings {
  readonly record: boolean
  /** Nothing is recorded only because the device's data budget is used up. Such a session says so. */
  readonly overBudget?: boolean
  /** Whether a session that cannot be recorded continues. */
  readonly continueUnrecorded: boolean
  /**
   * Texts before secrets of the namespace's own, next to those that are masked everywhere;
   * false: none is masked.
   */
  readonly mask?: readonly string[] | false
}

export interface RecorderParts extends Pick<
  RecordedSession,
  'recordings' | 'about' | 'onBegun' | 'onOverBudget' | 'onMasked'
> {
  /** The settings at the start of the session. */
  settings: RecordingSettings
  /** Called once, with the reason and whether the session continues unrecorded. */
  onFailed(error: Error, goesOn: boolean): void
}

export function sessionRecorder(parts: RecorderParts): SessionRecorder {
  const channels = new Set<SwitchableRecorder>()
  const { settings } = parts
  let { continueUnrecorded } = settings
  const session: RecordedSession = {
    recordings: parts.recordings,
    about: parts.about,
    wanted: settings.record,
    overBudget: settings.overBudget ?? false,
    finder: finderOf(settings.mask),
    failure: undefined,
    onBegun: parts.onBegun,
    onOverBudget: parts.onOverBudget,
    masked: 0,
    onMasked: parts.onMasked,
    fail(error) {
      if (session.failure) return
      // A later change of the setting does not end the session.
      session.failure = { error, goesOn: continueUnrecorded }
      parts.onFailed(error, continueUnrecorded)
    },
    mask: (text) =>
      session.finder ? Buffer.from(masker(session.finder).mask(Buffer.from(text))).toString() : text,
    onClosed: (channel) => channels.delete(channel),
  }

  return {
    channel(screen) {
      const channel = channelRecorder(session, screen)
      channels.add(channel)
      return channel
    },
    mask: session.mask,
    apply({ record, overBudget = false, ...changed }) {
      continueUnrecorded = changed.continueUnrecorded
      session.finder = finderOf(changed.mask)
      if (record === session.wanted && overBudget === session.overBudget) return
      session.wanted = record
      session.overBudget = overBudget
      for (const one of channels) one.apply()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...channels].map((one) => one.close()))
    },
  }
}
