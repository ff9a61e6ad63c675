// The part of the agent's launcher that starts an update instead of the agent next to it. It belongs to the
// installation that a person made, which no update changes, so it is also what puts the former agent back:
//   updates/<build>/   an agent, complete
//   updates/current    the build that is started; without it the agent next to the launcher is
//   updates/next       the build that is being tried; the agent renames it to `current` when its tunnel is up
//   updates/tries      how often `next` was started
//   updates/failed     the former `next`, when it did not connect; `why` says what happened
// A power cut at any moment leaves one of them in charge: each file is replaced by a rename. The files and
// their meaning are releaseFormat 1 (contract/src/releases.ts): launchers of older installations read them.

/** Starts of a new agent before the former one is restored. */
export const mostTries = 3
/** For a new agent to connect, unless HAWSER_UPDATE_WAIT is set. */
export const wait_s = 300

export const updateLauncher = `updates="$here/../updates"
# The moment a process began: its number alone may belong to another one later.
began() {
  read -r began_line <"/proc/$1/stat" || return 1
  set -- \${began_line##*) }
  echo "\${20}"
} 2>/dev/null
build_in() {
  build="$(cat "$updates/$1" 2>/dev/null)"
  case "$build" in '' | *[!0-9a-f]*) return 1 ;; esac
  [ -x "$updates/$build/bin/hawser-agent" ]
}
if [ -d "$updates" ]; then
  if [ $# -eq 0 ] && [ -e "$updates/next" ]; then
    tries="$(cat "$updates/tries" 2>/dev/null)"
    case "$tries" in '' | *[!0-9]*) tries=0 ;; esac
    if [ "$tries" -lt ${mostTries} ] && build_in next &&
      echo $((tries + 1)) >"$updates/tries.new" && mv -f "$updates/tries.new" "$updates/tries"; then
      since="$(began $$)"
      wait_s="\${HAWSER_UPDATE_WAIT:-${wait_s}}"
      ( (
        trap '' HUP
        sleep "$wait_s"
        [ "$(cat "$updates/next")" = "$build" ] && [ "$(began $$)" = "$since" ] || exit 0
        echo "it had not connected after $wait_s seconds" >"$updates/why"
        echo ${mostTries} >"$updates/tries"
        kill -9 $$
      ) </dev/null >/dev/null 2>&1 &)
      exec "$updates/$build/bin/hawser-agent"
    fi
    [ -s "$updates/why" ] || echo "it ended $tries times before it had connected" >"$updates/why"
    mv -f "$updates/next" "$updates/failed"
  fi
  if build_in current; then exec "$updates/$build/bin/hawser-agent" "$@"; fi
fi
`
