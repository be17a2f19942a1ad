// Starts the scripts of every page. Most listen on the document, so they also cover parts that load later. Those that
// must process each part run again for parts from htmx or the live connection.

import { startCodeFiles } from "./code_files.js";
import { startCopy } from "./copy.js";
import { startCsrf } from "./csrf.js";
import { startDialogs } from "./dialog.js";
import { startDraftBack } from "./draft_back.js";
import { startFileEditor } from "./file_editor.js";
import { startFlowDrafts } from "./flow_draft.js";
import { startDrafts } from "./form.js";
import { startFormChecks } from "./form_check.js";
import { startHeights } from "./keep_height.js";
import { startKeys } from "./keys.js";
import { startList } from "./list.js";
import { startLive } from "./live.js";
import { startLogs } from "./log_view.js";
import { startMenus } from "./menu.js";
import { startPalette } from "./palette.js";
import { startPlots } from "./plots.js";
import { startRefresh } from "./refresh.js";
import { startRibbons } from "./ribbon.js";
import { startRows } from "./rows.js";
import { startSecurityKeys } from "./security_key.js";
import { startSizes } from "./size.js";
import { startSuggestions } from "./suggest.js";
import { startTabs } from "./tabs.js";
import { startTheme } from "./theme.js";
import { startTime } from "./time.js";
import { startToasts } from "./toast.js";
import { startUploads } from "./upload.js";
import { startWall } from "./wall.js";
import { startWhatIf } from "./what_if.js";
import { startYamlEditors } from "./yaml_editor.js";

startHeights();
startCodeFiles();
startCopy();
startDialogs();
startCsrf(); // after the dialogs, whose confirmation stops unconfirmed forms
startKeys();
startList();
startMenus();
startPalette();
startRibbons();
startRows();
startSecurityKeys();
startSizes();
startSuggestions();
startTheme();
startTime();
startToasts();
startWhatIf();
startFlowDrafts();
startDrafts();
startYamlEditors(); // after the drafts, whose text it shows
startFileEditor(); // as well
startFormChecks();
startDraftBack();
startUploads();
startWall();
startLive();
startRefresh();

for (const start of [startTabs, startPlots, startLogs]) {
  start(document);
  document.addEventListener("htmx:load", (event) => start(event.detail.elt));
  document.addEventListener("hekla:live", () => start(document));
  document.addEventListener("hekla:refreshed", (event) => event.detail.elements.forEach((element) => start(element)));
}

document.querySelector("[data-focus-first]")?.focus();
